/* Triples of symbols around the origin: the mixture that is the origin, and what it costs.
 *
 * Triples are taken by the member i of the largest weight. The others lie beyond the origin as
 * seen from i, one on either side of the ray from i through it; p is the coordinate along this
 * ray, o that across it, r the distance of i from the origin. Two others j and k, at the distances
 * o_j and o_k on either side, have the weights a = o_k / (o_j + o_k) and 1 - a between themselves,
 * and together r / (r + p), p the mean of theirs. For example, r = 1, p_j = p_k = 1 and o_j = o_k
 * give the weights 1/2, 1/4, 1/4.
 *
 * `triples_of` does one i: (1) it sorts the others by their side of the ray (`gather_sides`); (2)
 * it leaves i if no triple can be cheap enough (`may_be_cheap`); (3) for each j it bounds all k
 * without a logarithm (`bound_triples`); (4) it evaluates those below the level (`price_triple`).
 * Their costs and errors go to `note` (`_plane.h`).
 */

#include "_plane.h"

/* A symbol within this many blurs of the origin cannot be told from the origin. */
#define AT_ORIGIN 1e3
/* The others together weigh at most two thirds where i has the largest weight; a little more. */
#define LARGEST_REST 0.6666668
/* At most a half, a little more: used where all above it is too dear anyway. */
#define LARGEST_HALF 0.5000001
/* The mean of the others lies this share of r beyond the origin if they weigh two thirds; a
 * little less. */
#define LEAST_FAR 0.49
/* The weights of two others at a distance `sum` across the ray are wrong by less than SHARP if
 * `sum` is at least this many blurs times reach / (SHARP r). */
#define SHARP_BLURS 32.0

/* One symbol of the largest weight. */
typedef struct {
    int32_t i;
    double r;       /* its distance from the origin */
    double s;       /* its score */
    double sharp;   /* least sum of distances across the ray at which weights are sharp */
    double largest; /* largest weight of the others together */
} Corner;

/* Lower bounds of the triples of a corner with j (at p_j, o_j, score s_j) and every k of the
 * other side; negative infinity where the weights are blurred. Returns the least. */
HOT static double bound_triples(const Corner *corner, double p_j, double o_j, double s_j,
                                const double *p, const double *o, const double *s, ptrdiff_t count,
                                double *bound)
{
    double r = corner->r;
    double s_i = corner->s;
    double sharp = corner->sharp;
    double largest = corner->largest;
    double least = INFINITY;
    for (ptrdiff_t k = 0; k < count; k++) {
        double sum = o_j + o[k];
        double inverse = 1.0 / sum;
        double a = o[k] * inverse; /* weights of j and k between themselves */
        double b = o_j * inverse;
        double far = a * p_j + b * p[k] + r;
        double rest = r / far; /* their weight together */
        double low = FOUR_LOG_2 * rest * ((1.0 - rest) + a * b) + (1.0 - rest) * s_i +
                     rest * (a * s_j + b * s[k]);
        low = far * largest >= r ? low : INFINITY;
        bound[k] = sum >= sharp ? low : -INFINITY;
    }
    for (ptrdiff_t k = 0; k < count; k++)
        least = bound[k] < least ? bound[k] : least;
    return least;
}

/* Sort the other symbols by the side of the ray from i; the farthest one beyond the origin.
 * Those within the blur of the ray are on both sides. */
static double gather_sides(const Pricing *pricing, Space *space, const Plane *plane,
                           const Corner *corner)
{
    const double *f = plane->f;
    const double *g = plane->g;
    const double *s = plane->s;
    double e = -f[corner->i] / corner->r;
    double h = -g[corner->i] / corner->r;
    double blur = pricing->blur;
    double farthest = 0.0;
    ptrdiff_t n = pricing->n;
    Side up = space->up; /* in registers while they grow */
    Side down = space->down;
    up.count = 0;
    down.count = 0;
    for (ptrdiff_t j = 0; j < n; j++) {
        if (j == corner->i)
            continue;
        double p = f[j] * e + g[j] * h;
        double o = g[j] * e - f[j] * h;
        if (p > farthest)
            farthest = p;
        if (o >= -blur)
            side_add(&up, p, o, s[j], (int32_t)j);
        if (o <= blur)
            side_add(&down, p, -o, s[j], (int32_t)j);
    }
    space->up = up;
    space->down = down;
    return farthest;
}

/* Evaluate the triple of a corner with place u of the upper side and place k of the lower one. */
static void price_triple(Pricing *pricing, const Space *space, const Plane *plane,
                         const Corner *corner, ptrdiff_t u, ptrdiff_t k)
{
    const Side *up = &space->up;
    const Side *down = &space->down;
    double r = corner->r;
    double s_i = corner->s;
    double s_j = up->s[u];
    double s_k = down->s[k];
    double p_j = up->p[u];
    double p_k = down->p[k];
    double sum = up->o[u] + down->o[k];
    double least = s_i < s_j ? s_i : s_j;
    double floor = (least < s_k ? least : s_k) - plane->offset;
    double error = INFINITY;
    double value = floor;
    /* without a distance across the ray the weights are unknown: the floor is all that holds */
    if (sum > 0.0) {
        double a = down->o[k] / sum;
        double p = a * p_j + (1.0 - a) * p_k;
        double part = r / (p + r); /* weight of j and k together */
        double x = part * a;
        double z = part * (1.0 - a);
        double a_error = QUOTIENT_BLUR * pricing->blur / sum;
        double p_error = a_error * (fabs(p_j) + fabs(p_k)) + QUOTIENT_BLUR * pricing->blur;
        if (p + p_error < LEAST_FAR * r)
            return; /* the others weigh more than two thirds: i is not the largest */
        if (p > 2.0 * p_error) {
            error = a_error + 2.0 * part * p_error / (p + r);
            value = entropy_term(1.0 - part) + entropy_term(x) + entropy_term(z) +
                    (1.0 - part) * s_i + x * s_j + z * s_k - plane->offset;
        }
    }
    int32_t members[3] = {corner->i, up->index[u], down->index[k]};
    note(pricing, value, error, floor, members);
}

/* Whether any triple of the corner may lie below the limit; sets the largest weight of the
 * others. The bound is concave in their weight, so least at an end; with half or more for them
 * H >= log 2. */
static int may_be_cheap(const Pricing *pricing, Corner *corner, double farthest, double limit)
{
    double rest = corner->r / (corner->r + farthest + QUOTIENT_BLUR * pricing->blur);
    double half = 0.25 * FOUR_LOG_2 + corner->s / 3.0;
    double ends = half;
    if (rest < 0.5)
        ends = entropy_term(rest) + entropy_term(1.0 - rest) + (1.0 - rest) * corner->s;
    if (ends > limit && half > limit)
        return 0;
    corner->largest = half > limit ? LARGEST_HALF : LARGEST_REST;
    return 1;
}

/* All triples with the origin in which i has the largest weight. */
void triples_of(Pricing *pricing, Space *space, const Plane *plane, int32_t i)
{
    Corner corner = {.i = i, .r = hypot(plane->f[i], plane->g[i]), .s = plane->s[i]};
    const Side *up = &space->up;
    const Side *down = &space->down;
    if (corner.r <= AT_ORIGIN * pricing->blur) {
        /* its direction is noise; nothing is cheaper than its unit vector by more than that */
        double low = corner.s - plane->offset;
        if (low < pricing->level + pricing->margin && pricing->floor < pricing->lowest)
            pricing->lowest = pricing->floor;
        return;
    }
    double farthest = gather_sides(pricing, space, plane, &corner);
    if (farthest <= 0.0)
        return;
    if (!may_be_cheap(pricing, &corner, farthest, pricing->level + pricing->margin + plane->offset))
        return;
    double *bound = space->bound;
    ptrdiff_t others = down->count;
    corner.sharp = SHARP_BLURS * pricing->blur * plane->reach / (SHARP * corner.r);
    for (ptrdiff_t u = 0; u < up->count; u++) {
        double limit = pricing->level + pricing->margin + plane->offset;
        double least = bound_triples(&corner, up->p[u], up->o[u], up->s[u], down->p, down->o,
                                     down->s, others, bound);
        if (least > limit)
            continue;
        for (ptrdiff_t k = 0; k < others; k++) {
            if (bound[k] > limit || down->index[k] == up->index[u])
                continue;
            price_triple(pricing, space, plane, &corner, u, k);
        }
    }
}

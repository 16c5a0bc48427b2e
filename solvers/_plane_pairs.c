/* Pairs of symbols across a line: where their segment meets it, and what the mixture there costs.
 *
 * f is the function of the line at each symbol. Symbols i with f_i <= 0 and j with f_j >= 0 meet
 * the line in (1 - t) i + t j, t = -f_i / (f_j - f_i): f_i = -1 and f_j = 3 give t = 1/4. That
 * mixture costs h(t) - (1 - t) y_i - t y_j.
 *
 * `gather_above` lists the symbols j once for the line. For each i, `pairs_of` bounds all its
 * pairs without a logarithm (`bound_pairs`, by h(t) >= 4 log 2 t (1 - t)), and evaluates those
 * whose bound is below the level and whose mixture may lie within the other lines (`is_within`).
 * `note` keeps the best ones and the proven bound (`_plane.h`).
 */

#include "_plane.h"

/* Lower bounds of all mixtures of one symbol below a line (f_i <= 0, price y_i) with those
 * above it; returns the least. */
HOT static double bound_pairs(double f_i, double y_i, const double *f, const double *y,
                              ptrdiff_t count, double *bound)
{
    double least = INFINITY;
    for (ptrdiff_t k = 0; k < count; k++) {
        double t = -f_i / (f[k] - f_i);
        bound[k] = FOUR_LOG_2 * t * (1.0 - t) - (1.0 - t) * y_i - t * y[k];
    }
    for (ptrdiff_t k = 0; k < count; k++)
        least = bound[k] < least ? bound[k] : least;
    return least;
}

/* The symbols on or above the line at hand, into the upper side. */
void gather_above(const Pricing *pricing, Space *space, const Lines *lines)
{
    const double *f = lines->all + lines->line * pricing->n;
    space->up.count = 0;
    for (ptrdiff_t j = 0; j < pricing->n; j++)
        if (f[j] >= -pricing->blur)
            side_add(&space->up, f[j] > 0.0 ? f[j] : 0.0, 0.0, lines->y[j], (int32_t)j);
}

/* Whether the mixture (1 - t) i + t j, t wrong by `error`, may lie within all other lines. */
static int is_within(const Lines *lines, ptrdiff_t n, int32_t i, int32_t j, double t, double error)
{
    for (ptrdiff_t m = 0; m < lines->lines; m++) {
        if (m == lines->line)
            continue;
        const double *f = lines->all + m * n;
        double value = (1.0 - t) * f[i] + t * f[j];
        if (!(value <= lines->outside + error * fabs(f[i] - f[j])))
            return 0;
    }
    return 1;
}

/* All pairs of a symbol with those of the upper side, if it is on or below the line at hand. */
void pairs_of(Pricing *pricing, Space *space, const Lines *lines, int32_t i)
{
    const double *f = lines->all + lines->line * pricing->n;
    const double *y = lines->y;
    const Side *up = &space->up;
    if (f[i] > pricing->blur)
        return;
    double f_i = f[i] < 0.0 ? f[i] : 0.0;
    double limit = pricing->level + pricing->margin;
    if (bound_pairs(f_i, y[i], up->p, up->s, up->count, space->bound) > limit)
        return;
    for (ptrdiff_t k = 0; k < up->count; k++) {
        int32_t j = up->index[k];
        if (space->bound[k] > limit || j == i)
            continue;
        double width = up->p[k] - f_i;
        double t = -f_i / width;
        double error = QUOTIENT_BLUR * pricing->blur / width;
        if (!(width > 0.0))
            t = 0.5; /* both on the line: the floor is all that can be proven */
        if (!is_within(lines, pricing->n, i, j, t, error))
            continue;
        double value = entropy_term(t) + entropy_term(1.0 - t) - (1.0 - t) * y[i] - t * y[j];
        double floor = y[i] > y[j] ? -y[i] : -y[j];
        int32_t members[3] = {i, j, -1};
        note(pricing, value, error, floor, members);
    }
}

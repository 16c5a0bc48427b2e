/* Supports of two and three symbols in a plane: the loops of `solvers.pricing.plane`.
 *
 * Every symbol is a point of the plane. A pair of them meets a line in one point, and a triple
 * holds a given point (the origin) in one mixture theta; its reduced cost is H(theta) -
 * theta.y. Loops over pairs and triples first bound it from below without a logarithm, by h(t)
 * >= 4 log 2 t (1 - t) for the binary entropy h, and evaluate only what may lie below the
 * level.
 *
 * The bound `lowest` is proven. The coordinates come with an absolute error `blur`; a mixture
 * whose weights may therefore be wrong by E costs at least its computed value less slack(E),
 * and in any case no less than the unit vectors of its symbols (the floor), for H is not
 * negative.
 *
 * Files: _plane_pairs.c; _plane_triples.c; _plane_module.c, the Python module. The functions
 * that each evaluated mixture needs are in this header, to be inlined in both loops.
 */

#ifndef SOLVERS_PLANE_H
#define SOLVERS_PLANE_H

#include <float.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define FOUR_LOG_2 2.772588722239781
/* Weights that may be wrong by more than this are not trusted to discard a mixture. */
#define SHARP 1e-7
/* A quotient of coordinates that are each wrong by the blur is wrong by at most this many times
 * the blur over its denominator. */
#define QUOTIENT_BLUR 4.0

/* Mixtures evaluated, per symbol, after which only those near the best one are: at prices far
 * from any optimum nearly all are below zero. */
#define MANY 10
#define CLOSE 0.95
/* Errors of weights for which `slack` holds. */
#define LARGEST_ERROR 0.1
/* Operations of which a value is made, with something to spare. */
#define OPERATIONS 64.0

/* Loops whose bounds prove nothing by themselves may be vectorised freely, for the machine at
 * hand. */
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__linux__) && \
    defined(__GLIBC__)
#define HOT __attribute__((target_clones("avx2,fma", "default"), optimize("no-trapping-math")))
#else
#define HOT
#endif

/* The state of one pricing: the best mixtures so far, the bound, and what is still of interest. */
typedef struct {
    ptrdiff_t n;   /* symbols */
    double blur;   /* absolute error of coordinates */
    double size;   /* bound of |prices| */
    double margin; /* distance from the level within which a mixture is evaluated: slack(SHARP) */
    double level;  /* dearer mixtures are of no interest: it falls to keep * (best value) */
    double keep;
    double lowest;       /* proven lower bound of every mixture so far */
    double floor;        /* least cost of any unit vector */
    double *best;        /* n: least value of a mixture with each symbol */
    int32_t *support;    /* n x 3: the members of that mixture, -1 for no third symbol */
    long long evaluated; /* mixtures evaluated */
} Pricing;

/* Symbols on one side of a line, with coordinates along it (p) and away from it (o), and scores
 * s. */
typedef struct {
    double *p, *o, *s;
    int32_t *index;
    ptrdiff_t count;
} Side;

/* Work space for n symbols. */
typedef struct {
    void *memory;
    Side up, down;
    double *bound; /* n: lower bounds of mixtures with each symbol of a side */
} Space;

/* The points around which triples are priced. */
typedef struct {
    const double *f, *g; /* n: coordinates, with the given point at the origin */
    const double *s;     /* n: what each unit vector costs, plus the offset */
    double offset;
    double reach; /* bound of |coordinates| */
} Plane;

/* The lines that pairs are priced on. */
typedef struct {
    const double *all; /* lines x n: each line's function at the symbols */
    ptrdiff_t lines;
    ptrdiff_t line;  /* the one at hand */
    const double *y; /* n: prices */
    double outside;  /* a mixture counts where no other function is above this */
} Lines;

/* -x log x. */
static inline double entropy_term(double x)
{
    return x > 0.0 ? -x * log(x) : 0.0;
}

/* Largest change of H(theta) + theta.s over three weights that are each wrong by at most
 * `error`, at most LARGEST_ERROR, and |s| at most `size`: |phi(x) - phi(y)| <= E (1 - log E)
 * for |x - y| <= E. */
static inline double slack(double error, double size)
{
    return 3.0 * error * (1.0 - log(error) + size) + OPERATIONS * DBL_EPSILON * (1.0 + size);
}

/* Note a mixture of these members (-1 for none) with its computed value, the error of its
 * weights, and the least cost of its members' unit vectors. */
static inline void note(Pricing *pricing, double value, double error, double floor,
                        const int32_t members[3])
{
    double low = error < LARGEST_ERROR ? value - slack(error, pricing->size) : floor;
    if (low < floor)
        low = floor;
    if (low < pricing->lowest)
        pricing->lowest = low;
    pricing->evaluated++;
    /* Blurred weights prove a bound, but the mixture may miss the plane's point: no column. */
    if (!(error < SHARP))
        return;
    for (int t = 0; t < 3; t++) {
        int32_t member = members[t];
        if (member < 0 || value >= pricing->best[member])
            continue;
        pricing->best[member] = value;
        memcpy(pricing->support + 3 * member, members, 3 * sizeof members[0]);
    }
    double keep = pricing->evaluated > MANY * pricing->n ? CLOSE : pricing->keep;
    /* Below zero, mixtures that are nearly as good are of interest, too: they may be columns. */
    double level = value < 0.0 ? keep * value : value;
    if (level < pricing->level)
        pricing->level = level;
}

/* Add a symbol to a side; a coordinate that is negative by no more than its blur counts as zero. */
static inline void side_add(Side *side, double p, double o, double s, int32_t index)
{
    side->p[side->count] = p;
    side->o[side->count] = o > 0.0 ? o : 0.0;
    side->s[side->count] = s;
    side->index[side->count] = index;
    side->count++;
}

/* _plane_pairs.c */
void gather_above(const Pricing *pricing, Space *space, const Lines *lines);
void pairs_of(Pricing *pricing, Space *space, const Lines *lines, int32_t i);

/* _plane_triples.c */
void triples_of(Pricing *pricing, Space *space, const Plane *plane, int32_t i);

#endif

/* The vertex enumeration in four files: _pivot_basis.c, the set and one basis; _pivot_ratio.c, the ratio
   tests; _pivot_walk.c, the walk from basis to basis; _pivot.c, the points found and the Python module. */

#ifndef SOLVERS_PIVOT_H
#define SOLVERS_PIVOT_H

#include <float.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#if defined(_MSC_VER)
#define PREFETCH(p) ((void)0)
#else
#define PREFETCH(p) __builtin_prefetch(p)
#endif

/* Sixteen roundings: two of the data on each side of an equation, the rest for the k x k solve. */
#define NOISE (16.0 * DBL_EPSILON)

enum { DONE = 0, EMPTY = 1, LIMIT = 2, FAILED = 3, NO_MEMORY = 4, STOPPED = 5 };
enum { BETWEEN = 0, AT_LOWER = 1, AT_UPPER = 2 };

/* The set, its rows scaled to size one by powers of two, without sides that the simplex implies. */
typedef struct {
    ptrdiff_t n, m, width;       /* columns, informative rows, n + 1: column n only serves the start */
    double *a, *blur;             /* m x width: entries, and how far rounding may have moved each */
    double *lower, *upper;        /* m, infinite where the side is free or implied by the simplex */
    double *push_lower, *push_upper;
    uint64_t *place, *tag;        /* hash words of every column (n + 1), then of each row's two bounds */
} Problem;

/* One basis, all that follows from it, and work space. */
typedef struct {
    int k;
    int32_t *columns, *rows; /* T (k), and R (k - 1) coded as 2 * row + (1 if at the upper bound) */
    double *matrix, *inverse;         /* k x k; row r < k - 1 of the matrix belongs to rows[r] */
    double *matrix_blur, *work;       /* k x k */
    double *value, *slope;            /* k: v_T and its slope */
    double *activity, *drift;         /* m: w = A v of the rows, and its slope */
    double *value_error, *activity_error;
    double *gain;                     /* m x capacity: A[t, T] inverse, of the rows that are not tight */
    unsigned char *tight;             /* m */
    int32_t *position;                /* n + 1: where a column is in T, or -1 */
    double size;                      /* one and the sum of |inverse| */
    double least, least_tilt;         /* the smallest basic quantity above zero; the smallest slope of a zero one */
    int zero;                         /* whether some basic quantity is zero: a degenerate vertex */
    int shared;                       /* whether other bases may have the same vertex */
    int capacity;
    /* work space of the ratio tests */
    double *residual, *direction, *direction_error, *quantity, *change, *tilt, *error;
    int32_t *code;
    int ties;                         /* codes that pivot_ratio_exact could not tell apart */
    double *best, *second, *rate, *rate_error;
    uint64_t code_mask;
    uint64_t *next_place, *next_tag;
    int32_t *leave;
    const double **row, **row_blur;
    void *block;
} Basis;

/* What a row's activity can still move to one of its bounds; infinite where that bound is free. */
typedef struct {
    double quantity, tilt, error;
} Side;

/* A vertex. */
typedef struct {
    const int32_t *column; /* its support, ascending, and the values there; set when the walk is over */
    const double *value;
    size_t start;
    double key;
    int count;
    unsigned char shared, degenerate, twin;
} Point;

typedef struct {
    Problem problem;
    Basis basis, probe;               /* the one at hand, and one to look ahead */
    int32_t *record;
    /* bases found: k, T, R of each, in one arena */
    int32_t *arena;
    size_t *start, arena_used, arena_size, count, count_size;
    /* hash table of tags; 0 is free */
    uint64_t *slot;
    size_t mask;
    /* vertices of the bases done: sorted supports and values */
    int32_t *column;
    double *value;
    size_t entries, column_size, value_size;
    Point *point;
    size_t points, point_size, different; /* different: how many of them no other basis can have */
    size_t failures, most_bases, most_points;
} Walk;

/* _pivot_basis.c */
double pivot_unit(uint64_t seed); /* a fixed number in [0, 1) for every seed */
int pivot_problem_init(Problem *p, ptrdiff_t m, ptrdiff_t n, const double *rows, const double *magnitude,
                       const double *lower, const double *upper);
void pivot_problem_free(Problem *p);
int pivot_basis_init(Basis *b, const Problem *p);
void pivot_basis_free(Basis *b);
/* Everything of the basis that columns and rows name; -1 if it is none, or contradicts the walk. */
int pivot_basis_solve(Basis *b, const Problem *p);
Side pivot_side(const Basis *b, const Problem *p, ptrdiff_t row, int up);
/* One step of refinement of M x = right, and what the data, and a right side uncertain by `blur`, leave
   uncertain in x; that of the equations stays in b->residual. */
void pivot_refine(const Basis *b, const double *right, const double *blur, double *x, double *error);

/* _pivot_ratio.c */
/* What leaves when a column enters (column >= 0), or the tight row r leaves its bound: i < k for entry i
   of T; k + 2t or k + 2t + 1 for row t, which reaches its lower or upper bound; -1 if nothing does.
   b->ties codes (b->code, in the order of the push) share that step, if the step is not zero. */
int32_t pivot_ratio_exact(Basis *b, const Problem *p, ptrdiff_t column, int r);
/* All columns at once; then what leaves for a column, or for the tight row r, or -1 where only
   pivot_ratio_exact can tell. `doubt` is the relative error that rates may have. */
int pivot_ratio_fast(Basis *b, const Problem *p, double *doubt);
int32_t pivot_leaving(const Basis *b, ptrdiff_t column, double doubt);
int32_t pivot_leaving_row(const Basis *b, const Problem *p, int r, double doubt);
/* out = last + sum over q of c[q] * row[q], column by column. */
void pivot_combine(ptrdiff_t n, int count, const double *c, const double *const *row, double last,
                   double *restrict out);

/* _pivot_walk.c: every basis, and the vertex of each. `pause` is called now and then; the walk stops if it
   returns something else than 0. Returns one of the codes above. */
int pivot_walk(Walk *w, int (*pause)(void *), void *argument);
void pivot_walk_free(Walk *w);

#endif

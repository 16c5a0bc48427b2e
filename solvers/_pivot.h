/* Enumeration of the vertices of {v >= 0, sum v = 1, lower <= A v <= upper}, from basis to
 * basis.
 *
 * A basis is a support T of k columns and k - 1 tight rows R, each at one of its bounds, for
 * which the k x k matrix M = [A[R, T]; 1] is regular; its vertex is v_T = M^-1 [bounds of R;
 * 1]. With H = M^-1 every neighbour costs one ratio test: a column that enters, or a tight row
 * that leaves its bound, changes the k entries of v_T and the slacks of the other rows linearly
 * (docs/explanation/optimum-theory.md, 'By vertices').
 *
 * Degenerate vertices. Bound i is pushed outwards by t * pi_i, with fixed irrational-looking
 * pi_i in [1, 2) and an infinitely small t > 0 that is carried symbolically: every basic
 * quantity is a pair (value, slope in t), compared lexicographically. The pushed polytope has
 * an interior if the set is not empty, and is simple, so its graph is connected, every basis
 * has exactly n - 1 neighbours, and each vertex of the set itself is the limit of at least one
 * feasible basis.
 *
 * What counts as zero. Inputs are doubles, so a quantity that a change of each entry and bound
 * by a few units in the last place of the terms it was computed from (`magnitude`) could turn
 * into zero is taken as zero: x = M^-1 y may err by |M^-1| (|dM| |x| + |dy|). Everything above
 * that is decided as computed. A fast vectorised pass decides where the gap is clear for any
 * error that the size of M^-1 permits; what is not clear is decided one by one, by the pairs.
 *
 * Files: _pivot_problem.c, the scaled set; _pivot_basis.c, one basis and all that follows from
 * it; _pivot_ratio.c and _pivot_ratio_fast.c, the ratio tests; _pivot_start.c, a first basis;
 * _pivot_walk.c, the walk; _pivot_points.c, twins merged; _pivot_module.c, the Python module.
 *
 * Codes. A tight row is 2 * row + (1 if at its upper bound). What leaves a basis is i < k for
 * entry i of T, or k + 2t (k + 2t + 1) for row t, which reaches its lower (upper) bound.
 */

#ifndef SOLVERS_PIVOT_H
#define SOLVERS_PIVOT_H

#include <float.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Sixteen roundings: two of the data on each side of an equation, the rest for the k x k solve. */
#define NOISE (16.0 * DBL_EPSILON)

/* How a walk ended. */
enum { DONE = 0, EMPTY = 1, LIMIT = 2, FAILED = 3, NO_MEMORY = 4, STOPPED = 5 };
/* Where a row of the basis stands. */
enum { BETWEEN = 0, AT_LOWER = 1, AT_UPPER = 2 };

/* The set, its rows scaled to size one by powers of two, without sides that the simplex implies. */
typedef struct {
    ptrdiff_t n;     /* columns */
    ptrdiff_t m;     /* informative rows */
    ptrdiff_t width; /* n + 1: column n only serves the start */
    double *a;       /* m x width: entries */
    double *blur;    /* m x width: how far rounding may have moved each entry */
    double *lower;   /* m: infinite where the side is free or implied by the simplex */
    double *upper;   /* m */
    double *push_lower, *push_upper; /* m: how far t pushes each bound outwards, in [1, 2) */
    uint64_t *place, *tag; /* two hash words of every column, then of each row's two bounds */
} Problem;

/* One basis, all that follows from it, and work space. */
typedef struct {
    void *block;      /* the memory of all arrays */
    int capacity;     /* most columns */
    int k;            /* columns */
    int32_t *columns; /* T: k */
    int32_t *rows;    /* R: k - 1 codes */

    double *matrix, *inverse;   /* k x k; row r < k - 1 of the matrix belongs to rows[r] */
    double *matrix_blur, *work; /* k x k */
    double *value, *slope;      /* k: v_T and its slope in t */
    double *activity, *drift;   /* m: w = A v of the rows that are not tight, and its slope */
    double *value_error;        /* k: what the data leave uncertain */
    double *activity_error;     /* m */
    double *gain;               /* m x capacity: A[t, T] M^-1, of the rows that are not tight */
    unsigned char *tight;       /* m: where each row stands */
    int32_t *position;          /* n + 1: where a column is in T, or -1 */
    double size;                /* one and the sum of |inverse| */
    double least;               /* smallest basic quantity above zero */
    double least_tilt;          /* smallest slope of a zero one */
    int zero;                   /* whether some basic quantity is zero: a degenerate vertex */
    int shared;                 /* whether other bases may have the same vertex */

    /* work space of the ratio tests */
    double *residual;                    /* capacity: what an equation leaves uncertain */
    double *direction, *direction_error; /* capacity: change of v_T for each unit of the step */
    double *quantity, *change;           /* capacity + m + 1 candidates: steps; right sides */
    double *tilt, *error;                /* the same: slopes in t, and errors of the steps */
    int32_t *code;                       /* the same: what leaves */
    int ties;                            /* codes that pivot_ratio_exact could not tell apart */
    double *best, *second;               /* n + 1: largest and second largest rate of each column */
    double *rate, *rate_error;           /* n + 1: rates of one quantity */
    uint64_t code_mask;                  /* low bits of a rate that hold the code of what leaves */
    uint64_t *next_place, *next_tag;     /* n + capacity moves: hash words of the neighbours */
    int32_t *leave;                      /* the same: what leaves, or -1 */
    const double **row, **row_blur;      /* capacity: rows to be combined */
} Basis;

/* What a row's activity can still move to one of its bounds; infinite where that bound is free. */
typedef struct {
    double quantity; /* the slack */
    double tilt;     /* its slope in t */
    double error;    /* what the data leave uncertain */
} Side;

/* A vertex. */
typedef struct {
    const int32_t *column; /* its support, ascending; set when the walk is over */
    const double *value;   /* the values there */
    size_t start;          /* its first entry in the walk's arrays */
    double key;            /* a random projection, by which twins are sorted together */
    int count;             /* positive entries */
    unsigned char shared;  /* whether other bases may have it */
    unsigned char degenerate;
    unsigned char twin; /* whether it repeats another */
} Point;

typedef struct {
    Problem problem;
    Basis basis; /* the one at hand */
    Basis probe; /* one to look ahead */
    int32_t *record;
    /* bases found: k, T, R of each, in one arena */
    int32_t *arena;
    size_t *start;
    size_t arena_used, arena_size;
    size_t count, count_size;
    /* hash table of the tags of these bases; 0 is free */
    uint64_t *slot;
    size_t mask;
    /* vertices of the bases done: sorted supports and values */
    int32_t *column;
    double *value;
    size_t entries, column_size, value_size;
    Point *point;
    size_t points, point_size;
    size_t different; /* vertices that no other basis can have */
    size_t failures;  /* decisions that contradict each other */
    size_t most_bases, most_points;
} Walk;

/* _pivot_problem.c */
double pivot_unit(uint64_t seed);
int pivot_problem_init(Problem *p, ptrdiff_t m, ptrdiff_t n, const double *rows,
                       const double *magnitude, const double *lower, const double *upper);
void pivot_problem_free(Problem *p);

/* _pivot_basis.c */
int pivot_basis_init(Basis *b, const Problem *p);
void pivot_basis_free(Basis *b);
void pivot_basis_load(Basis *b, const int32_t *record);
int pivot_basis_solve(Basis *b, const Problem *p);
Side pivot_side(const Basis *b, const Problem *p, ptrdiff_t row, int up);
void pivot_refine(const Basis *b, const double *right, const double *blur, double *x,
                  double *error);

/* _pivot_ratio.c */
int32_t pivot_ratio_exact(Basis *b, const Problem *p, ptrdiff_t column, int r);

/* _pivot_ratio_fast.c */
int pivot_ratio_fast(Basis *b, const Problem *p, double *doubt);
int32_t pivot_leaving(const Basis *b, ptrdiff_t column, double doubt);
int32_t pivot_leaving_row(const Basis *b, const Problem *p, int r, double doubt);
void pivot_combine(ptrdiff_t n, int count, const double *c, const double *const *row, double last,
                   double *restrict out);

/* _pivot_start.c */
int pivot_find_start(Walk *w);

/* _pivot_walk.c */
int pivot_walk_init(Walk *w);
int pivot_walk(Walk *w, int (*pause)(void *), void *argument);
void pivot_walk_free(Walk *w);
int pivot_append(Walk *w, ptrdiff_t column, int r, int32_t code);
int32_t pivot_decide(Walk *w, ptrdiff_t column, int r);

/* _pivot_points.c */
size_t pivot_sort_points(Walk *w, double tolerance, Point **order);

/* The row of a coded tight row. */
static inline int row_of_code(int32_t code)
{
    return code >> 1;
}

/* Whether a coded tight row stands at its upper bound. */
static inline int is_upper(int32_t code)
{
    return code & 1;
}

/* The entries of a row. */
static inline const double *row_entries(const Problem *p, ptrdiff_t row)
{
    return p->a + row * p->width;
}

/* How far rounding may have moved the entries of a row. */
static inline const double *row_blur(const Problem *p, ptrdiff_t row)
{
    return p->blur + row * p->width;
}

#endif

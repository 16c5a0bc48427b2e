/* Linear programs over a set of probability vectors, solved by a bounded dual simplex.
 *
 * The set is {x in R^N : 0 <= x <= top, lower_k <= a_k.x <= upper_k for every row k}. Its first
 * n coordinates are a probability vector v (one row is sum v = 1), the others auxiliary
 * variables. Some rows are fixed and always at hand. Others, called cuts, may be far too many
 * to list: a Separator finds those that a point violates, and they come and go.
 *
 * The program is min cost.x over a box and the rows at hand, in the variables (x, s) with one
 * slack s_k = a_k.x for each row: [A, -I] (x, s) = 0, every variable between finite ends. So
 * each basis is dual feasible as soon as every nonbasic variable stands at the end that its
 * reduced cost asks for, and the dual simplex can start from any basis.
 *
 * No tolerance of the simplex enters a bound that leaves these files: a bound is always the
 * Lagrangian of `_program_bound.c`, evaluated again from the multipliers with an allowance for
 * rounding.
 *
 * Files: _program_rounds.c, memory, rows that come and go, and programs solved in rounds of new rows;
 * _program_basis.c, the inverse of the basis; _program_simplex.c, the dual simplex;
 * _program_bound.c, the bound that rounding cannot break.
 *
 * Letters: n coordinates, N structural variables, M rows at hand. Index j runs over variables
 * (the slack of row k is variable N + k), k over rows, i over positions in the basis.
 */

#ifndef SOLVERS_PROGRAM_H
#define SOLVERS_PROGRAM_H

#include <float.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* The dense loops over all variables take most of the time. Where compiler and system can choose a
 * version at load time, these functions use the wider vectors of the machine at hand. */
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__linux__) && \
    defined(__GLIBC__)
#define HOT __attribute__((target_clones("avx2,fma", "default")))
#else
#define HOT
#endif
/* The same for a loop whose result proves nothing, so that it may be vectorised freely. */
#if defined(__GNUC__) && !defined(__clang__)
#define STEER HOT __attribute__((optimize("no-trapping-math", "no-signed-zeros", "no-math-errno")))
#else
#define STEER
#endif

/* How a linear program ended. */
enum {
    LP_OPTIMAL,
    LP_INFEASIBLE, /* `row_work` holds a ray that should prove it */
    LP_LIMIT,      /* too many iterations or rounds, or too late */
    LP_CUTOFF,     /* the value has passed the cutoff */
    LP_MEMORY
};

/* The ends that rows have: of the larger set, for bounds, or of the smaller one, for points. */
enum { OUTER_ROWS = 0, INNER_ROWS = 1 };

/* What `separate` returns in the place of a number of rows. */
enum { SEPARATE_MEMORY = -1, SEPARATE_FULL = -2 };

/* A row a.x <= upper end of all cuts, shared by the programs and open nodes that refer to it. */
typedef struct {
    int refs;
    double least;     /* least entry: the row's value is never below it, as sum x = 1 */
    double weight;    /* largest absolute entry */
    double entries[]; /* N */
} Cut;

typedef struct Problem Problem;
typedef struct Program Program;

/* Source of violated rows. A concrete separator has this as its first member. */
typedef struct Separator {
    /* Append rows that `point` violates; their number, or one of the codes above. */
    int (*separate)(struct Separator *self, const Problem *problem, Program *lp);
    void (*release)(struct Separator *self);
} Separator;

struct Problem {
    int n;                             /* coordinates of the probability vector */
    int N;                             /* structural variables: n and the auxiliary ones */
    int fixed;                         /* rows that are always at hand */
    double *rows;                      /* fixed x N: their entries */
    double *outer_lower, *outer_upper; /* fixed: ends of the rows of the set that bounds hold for */
    double *inner_lower, *inner_upper; /* fixed: ends of the smaller set that points must lie in */
    double *top;                       /* N: upper bounds of the variables */
    double *row_weight;                /* fixed: upper bound of sum_j |a_kj| x_j over the set */
    double mass;                       /* upper bound of sum_j x_j: 1 and the auxiliary bounds */
    Separator *separator;              /* NULL where all rows are fixed */
    double cut_outer, cut_inner;       /* upper end of every cut, in the two sets */
};

struct Program {
    void *memory; /* the one block that holds all of the arrays */
    int M;        /* rows at hand: the fixed ones, then the cuts */
    int capacity; /* most rows: the stride of `columns` and `inverse` */
    int inner;    /* OUTER_ROWS or INNER_ROWS */

    const double **row; /* capacity: entries of each row */
    double *columns;    /* N x capacity: the same matrix by columns */
    Cut **cut;          /* capacity: the cut that row k >= fixed is */

    double *lower, *upper, *cost; /* N + capacity: ends and costs of structurals, then slacks */
    double *value;                /* N + capacity: of nonbasic variables; 0 for basic ones */
    double *reduced;              /* N + capacity: reduced costs */
    double *tableau;              /* N + capacity: row of the tableau, or reduced costs of the
                                     last Lagrangian */
    int *position;                /* N + capacity: in the basis, or -1 */

    int *basis;          /* capacity: basic variables */
    double *basic_value; /* capacity */
    double *inverse;     /* capacity x capacity: the inverse's columns of active rows, one after the
                            other; a row is active if its slack is not basic */
    int active;          /* number of active rows */
    int updates;         /* changes of the basis since it was inverted */
    int *row_of;         /* capacity: row of each column of `inverse` */
    int *slot_of;        /* capacity: column of `inverse` of an active row */

    double *dual;      /* capacity: multipliers of the rows */
    double *row_work;  /* capacity: scratch over the rows */
    double *direction; /* capacity: entering column in terms of the basis */
    int *candidates;   /* N + capacity: heap of the ratio test; scratch */
    double *ratio;     /* N + capacity: break points of the dual step */
    char *keep;        /* capacity: scratch */

    double *point, *saved_point; /* N: values of the structurals when the program was last read */

    double cut_tolerance; /* violations of the larger set that are left */
    double deadline;      /* on now_seconds(): when a program with cuts gives up */
    double ends;          /* on now_seconds(): when the time of the search is over */
    long long pivots, programs;
};

/* _program_rounds.c */
int program_init(Program *lp, const Problem *problem, int capacity);
void program_free(Program *lp, const Problem *problem);
void cut_release(Cut *cut);
void set_rows(const Problem *problem, Program *lp, int inner);
void append_cut(const Problem *problem, Program *lp, Cut *cut, double value);
void drop_rows(const Problem *problem, Program *lp);
void reset_rows(const Problem *problem, Program *lp);
void load_rows(const Problem *problem, Program *lp, Cut *const *cuts, int count);
void open_box(const Problem *problem, Program *lp);
int solve(const Problem *problem, Program *lp, double start, double cutoff);
void primal_point(const Problem *problem, Program *lp);
int sharp_point(const Problem *problem, Program *lp);

/* _program_basis.c */
void slack_basis(const Problem *problem, Program *lp);
void solve_basis(const Problem *problem, const Program *lp, const double *rhs, double *out);
void entering_column(const Problem *problem, Program *lp, int enter);
void change_basis(const Problem *problem, Program *lp, int place, int enter);
void load_basis(const Problem *problem, Program *lp, const int16_t *basis);
void factor(const Problem *problem, Program *lp);
void multipliers(Program *lp);

/* _program_simplex.c */
void recompute(const Problem *problem, Program *lp);
int dual_simplex(const Problem *problem, Program *lp, double *reached, double cutoff);

/* _program_bound.c */
void weigh_rows(Problem *problem);
double lagrangian(const Problem *problem, Program *lp, const double *cost, const double *dual,
                  double constant, double magnitude);
int proves_empty(const Problem *problem, Program *lp, double *ray);
double rounding_allowance(double size);

/* Column j of the structural matrix, over the rows at hand. */
static inline const double *column_of(const Program *lp, int j)
{
    return lp->columns + (size_t)j * (size_t)lp->capacity;
}

/* Column `slot` of the inverse, over the positions of the basis. */
static inline double *inverse_column(const Program *lp, int slot)
{
    return lp->inverse + (size_t)slot * (size_t)lp->capacity;
}

/* The smaller one. Unlike fmin this compiles to one instruction; a NaN in the first place gives the
 * second. */
static inline double smaller(double a, double b)
{
    return a < b ? a : b;
}

/* The larger one, as above. */
static inline double larger(double a, double b)
{
    return a > b ? a : b;
}

/* x, or the end of [lower, upper] that it lies beyond. */
static inline double clipped(double x, double lower, double upper)
{
    if (x < lower)
        return lower;
    return x > upper ? upper : x;
}

#endif

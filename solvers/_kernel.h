/* Branch and bound for the minimum of a separable concave function over
 *
 *     { x in R^n : 0 <= x <= u, sum x = 1, lo <= A x + B r <= hi, r >= 0 },
 *
 * f(x) = sum_j [ phi(x_j) - y_j x_j ],  phi(x) = -x log x.
 *
 * On a box [l, u] each term is replaced by its chord, the linear under-estimator that is exact at
 * both ends; what is left is a linear program with few rows and many boxed columns, solved by a
 * bounded dual simplex. Every bound that leaves the kernel is NOT the value that the simplex reports:
 * it is the Lagrangian function of the chord problem, re-evaluated at the multipliers in plain
 * arithmetic with an explicit allowance for rounding. Weak duality makes it valid for any multipliers,
 * so no tolerance of the simplex, and no early stop of it, can make a bound wrong.
 *
 * Three files: _kernel_simplex.c, the problem, the simplex and the safe bound; _kernel_tree.c, boxes, nodes,
 * local searches and the points they find; _kernel_module.c, the Python type.
 */

#ifndef SOLVERS_KERNEL_H
#define SOLVERS_KERNEL_H

#include <float.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Rounding allowance of the Lagrangian: a sum of k terms errs by less than k ulp of the sum of the
 * absolute terms; SAFETY covers the few operations inside each term. */
#define SAFETY 16.0
/* Widths below this are not split any further: both ends agree to nearly all digits. */
#define SMALLEST_WIDTH 1e-9

enum { LP_OPTIMAL, LP_INFEASIBLE, LP_LIMIT, LP_CUTOFF, LP_MEMORY };

/* The dense loops over all columns are most of the time; where compiler and system can choose a version
 * at load time, they use the wider vectors of the machine at hand. */
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

typedef struct {
    int n; /* coordinates of x */
    int N; /* structural columns: n + auxiliary */
    int M; /* rows, the last one is sum x = 1 */
    double *A, *columns;     /* M x N, by rows and by columns */
    double *out_lo, *out_hi; /* rows of the set that is bounded */
    double *in_lo, *in_hi;   /* rows of the (slightly smaller) set that columns must lie in */
    double *root_u;          /* N upper bounds */
    double *row_weight;      /* M: upper bound of sum_j |A_kj| x_j over the feasible x */
    double mass;             /* 1 + sum of the auxiliary upper bounds */
} Problem;

typedef struct {
    void *memory; /* the one block that holds all of the following */
    /* the linear program: min c.x, L <= x <= U (structurals, then slacks s = A x) */
    double *L, *U, *c;  /* N + M */
    double *x, *d;      /* N + M: values of nonbasics, reduced costs */
    double *alpha;      /* N + M */
    int *where;         /* N + M: position in the basis or -1 */
    int *basis;         /* M */
    double *inverse;    /* M x M: the columns of the basis inverse of active rows (their slack is not basic) */
    int active, since;
    int *row_of, *slot_of; /* M: row of a column of `inverse`, and the reverse */
    double *xB;         /* M */
    double *pi;         /* M */
    double *work, *col; /* M */
    int *cand;          /* N + M */
    char *keep;         /* M */
    double *ratio;      /* N + M */
    /* the node */
    double *l, *u; /* n: box */
    double *v;     /* N: primal point */
    double *gain;  /* n: bounds of children that differ in one coordinate */
    long long pivots, lps;
} Work;

typedef struct Box {
    int refs;
    int16_t *basis; /* M */
    float *l, *u;   /* n each, rounded outwards */
    float cap;      /* of the coordinates whose rank is below a node's `after` */
    int16_t *rank;  /* n */
} Box;

typedef struct {
    double bound;
    Box *box;
    int k; /* coordinate whose interval differs from the box */
    float l, u;
    int after; /* ranks below it are capped */
} Node;

typedef struct {
    Problem p;
    Work w;
    double *y;
    double magnitude;
    double cutoff, column_cutoff;
    double best; /* least cost of a point seen so far: steers, proves nothing */
    double tolerance, slack, leaf;
    Node *heap;
    int size, capacity;
    double closed; /* least bound of leaves that cannot be split further */
    long long nodes, boxes, peak_boxes, box_limit;
    /* columns found: compressed rows */
    int ncols, col_capacity, nnz, nnz_capacity, max_columns;
    int *indptr, *indices;
    double *values, *costs;
} Search;

static inline double phi(double x)
{
    if (x <= 0.0) return 0.0;
    return -x * log(x);
}

/* _kernel_simplex.c */
double objective(const Problem *p, const double *y, const double *v);
void weigh_rows(Problem *p);
int work_init(Work *w, const Problem *p);
void work_free(Work *w);
void set_rows(const Problem *p, Work *w, int inner);
void slack_basis(const Problem *p, Work *w);
void factor(const Problem *p, Work *w);
void load_basis(const Problem *p, Work *w, const int16_t *basis);
void solve_basis(const Problem *p, const Work *w, const double *a, double *out);
void change_basis(const Problem *p, Work *w, int r, int enter);
void recompute(const Problem *p, Work *w);
int dual_simplex(const Problem *p, Work *w, double start, double cutoff);
void multipliers(const Problem *p, Work *w);
int sharp_point(const Problem *p, Work *w);
void primal_point(const Problem *p, Work *w);
double lagrangian(const Problem *p, Work *w, const double *c, const double *pi, double constant,
                  double magnitude);
int proves_empty(const Problem *p, Work *w, const double *ray);

/* _kernel_tree.c */
void clear_tree(Search *s);
int split_root(Search *s, int part, int parts);
Node pop(Search *s);
void box_drop(Search *s, Box *b);
int process(Search *s, Node node);
double descend(Search *s, int stage);
int take_column(Search *s, double cost);

/* _kernel_walk.c */
double walk(Search *s);

#endif

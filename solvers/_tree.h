/* Branch and bound for the minimum of a separable concave function over a set of probability
 * vectors:
 *
 *     min f(v) = sum_j [phi(v_j) - y_j v_j],   phi(x) = -x log x,   v in the set of `_program.h`.
 *
 * This is the pricing problem of the optimal channel (docs/explanation/optimum-theory.md, 'By
 * columns'): y are the prices of a master program, and a point with f < 0 is a new column. On a
 * box [l, u] each concave term is replaced by its chord, the linear under-estimator that is
 * exact at both ends; the linear program that is left bounds f from below over the box. Boxes
 * are split where the chord errs most.
 *
 * Only the bound of a node proves anything, and it comes from `lagrangian`. Points, costs and
 * cutoffs that come from the simplex only steer. Every open node lies in the heap, so at any
 * moment the least of its bounds, of the bounds of closed leaves and of the cutoff bounds the
 * minimum.
 *
 * Files: _tree_nodes.c, boxes and the heap of open nodes; _tree_points.c, the points found;
 * _tree_descent.c, local search; _tree_branch.c, splitting the root and the nodes;
 * _search_type.c, the Python type over a search.
 *
 * Two modules are compiled from these files and those of `_program.h`. `_kernel` has all rows
 * fixed, and walks from vertex to vertex besides (_kernel_walk.c, _kernel_module.c). `_robust`
 * has a separator instead, which finds rows by sorting (_robust_rows.h, _robust_module.c).
 */

#ifndef SOLVERS_TREE_H
#define SOLVERS_TREE_H

#include "_program.h"

/* Widths below this are not split any further: both ends agree to nearly all digits. */
#define SMALLEST_WIDTH 1e-9
/* A node is a leaf if its bound is closer to its point than this share of what is tolerated. */
#define LEAF_SHARE 0.1

/* The intervals, rows and basis of a split node, shared by its children. Floats save memory;
 * they are rounded outwards, so a box never loses a point. */
typedef struct {
    int refs;
    int rows;             /* rows of the program: the fixed ones and its cuts */
    int cuts;             /* number of cuts */
    Cut **cut;            /* cuts */
    float *lower, *upper; /* n: ends of the intervals */
    int16_t *basis;       /* rows */
    float cap;            /* upper end of the coordinates whose rank is below a node's `capped` */
    int16_t *rank;        /* n: order in which children cap coordinates */
} Box;

/* An open node: its parent's box with one interval changed, and perhaps some coordinates capped. */
typedef struct {
    double bound; /* proven lower bound of f */
    Box *box;
    int coordinate;     /* whose interval differs from the box */
    float lower, upper; /* that interval */
    int capped;         /* coordinates whose rank is below this are at most the box's cap */
} Node;

/* The points found, as compressed rows. */
typedef struct {
    int count, capacity;         /* points */
    int entries, entry_capacity; /* positive coordinates in all */
    int most;                    /* points to collect */
    int *start;                  /* count + 1: first entry of each point */
    int *index;                  /* entries: coordinates */
    double *value;               /* entries: their values */
    double *cost;                /* count: f at each point */
} Points;

typedef struct {
    Problem problem;
    Program program;
    /* how nodes are split, fixed for each kind of set */
    /* intervals are cut between the program's point (0) and their middle (1) */
    double to_middle;
    /* points with at most this share of positive coordinates are sparse */
    double sparse_share;
    /* every interval is cut in two, sparse points or not: the faster way to a cutoff far below the
     * best point */
    int halves;
    /* the function and the limits of this search */
    double *prices;       /* N: y, and minus what each auxiliary variable costs */
    double magnitude;     /* upper bound of the |costs| of every chord program */
    double cutoff;        /* nodes of a larger bound are of no interest */
    double column_cutoff; /* points of a larger cost are not kept */
    double tolerance;     /* absolute, and */
    double slack;         /* relative to the best cost: how far the bound may stay below */
    double best;          /* least cost of a point so far: steers, proves nothing */
    double leaf;          /* a node whose bound is this close to its point is not split */
    /* the tree */
    Node *heap; /* open nodes, the least bound first */
    int open, heap_capacity;
    double closed; /* least bound of leaves that cannot be split further */
    long long nodes, boxes, peak_boxes, box_limit;
    /* the node at hand */
    double *lower, *upper; /* n: its box */
    double *gain;          /* n: bounds of children that differ in one coordinate */
    Points points;
} Search;

/* The concave function -x log x of one coordinate, continued by 0. */
static inline double phi(double x)
{
    if (x <= 0.0)
        return 0.0;
    return -x * log(x);
}

/* The largest float that is at most x >= 0. */
static inline float float_below(double x)
{
    float nearest = (float)x;
    return (double)nearest > x ? nextafterf(nearest, -1.0f) : nearest;
}

/* The smallest float that is at least x <= 1. */
static inline float float_above(double x)
{
    float nearest = (float)x;
    return (double)nearest < x ? nextafterf(nearest, 2.0f) : nearest;
}

/* The term of coordinate j: phi(x) - y_j x. */
static inline double term(const Search *search, int j, double x)
{
    return phi(x) - search->prices[j] * x;
}

/* _tree_nodes.c */
int search_init(Search *search, int capacity);
void search_free(Search *search);
Box *box_new(Search *search);
void box_release(Search *search, Box *box);
void box_load(Search *search, const Box *box);
int push_node(Search *search, Node node);
Node pop_node(Search *search);
void clear_tree(Search *search);

/* _tree_points.c */
double objective(const Search *search, const double *point);
void note_cost(Search *search, double cost);
int keep_point(Search *search, double cost);
void points_free(Points *points);

/* _tree_descent.c */
double descend(Search *search, int stage);
/* Smoothings of `descend`: from the first, a support can still change; the last one goes
 * downhill. */
enum { COARSE_STAGE = 0, LAST_STAGE = 2 };

/* _tree_branch.c */
int split_root(Search *search, int part, int parts);
int process_node(Search *search, Node node);

/* _kernel_walk.c, where all rows are fixed */
double walk(Search *search);

#endif

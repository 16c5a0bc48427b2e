/* Local search from vertex to vertex: all neighbours of a vertex are priced, and the cheapest is
 * next.
 *
 * The function is f(v) = sum_j [phi(v_j) - y_j v_j] of `_tree.h`, on the polytope of the program's
 * rows. A vertex is a basis of the program (`_program.h`): every variable outside of the basis, a
 * nonbasic one, stands at one of its ends, and the rows give the values of the basic ones. The
 * neighbours of a vertex are reached along its edges, on each of which one nonbasic variable moves.
 *
 * Successive linearisation (`_tree_descent.c`) ends at a vertex from which no step leads downhill
 * at first. Its neighbours may be cheaper all the same, for between two vertices a concave
 * function may rise first and then fall. For example, with n = 2 and no prices, -x log x - (1 - x)
 * log(1 - x) rises from x = 0.1 and is 0.325 there, but at the other vertex, x = 0.95, it is 0.199.
 *
 * Each round of `walk`: (1) every nonbasic variable moves from its end until a basic one reaches
 * an end, or it reaches its own other end (`longest_step`); (2) f is evaluated at the vertex
 * there, from the few coordinates that change (`edge`); (3) the search goes to the cheapest
 * neighbour (`move`), and ends where none is cheaper by LEAST_FALL. A last descent polishes the
 * vertex.
 */

#include "_clock.h"
#include "_tree.h"

/* A step shorter than this leads nowhere: the vertex is degenerate. */
#define SHORTEST_STEP 1e-9
/* Basic variables whose rate is below this do not limit a step. */
#define PIVOT_TOL 1e-9
/* Vertices that one walk visits. */
#define MOST_STEPS 100
/* A fall below this is rounding. */
#define LEAST_FALL 1e-12

/* A step along an edge, on which one nonbasic variable moves. */
typedef struct {
    double length;
    double up;   /* 1 if the variable rises from its lower end, -1 if it falls from its upper one */
    double cost; /* f at the neighbour */
    /* position of the variable that leaves the basis, -1 if the moving one goes to its other end */
    int leave;
} Step;

/* The ratio test: how far nonbasic variable `enter` can move, whose column in terms of the
 * basis is in `direction`. */
static Step longest_step(const Program *lp, int enter)
{
    Step step = {.leave = -1};
    step.up = lp->value[enter] == lp->lower[enter] ? 1.0 : -1.0;
    step.length = lp->upper[enter] - lp->lower[enter];
    for (int i = 0; i < lp->M; i++) {
        double fall = step.up * lp->direction[i];
        if (fabs(fall) < PIVOT_TOL)
            continue;
        int j = lp->basis[i];
        double end = fall > 0.0 ? lp->lower[j] : lp->upper[j];
        double length = (lp->basic_value[i] - end) / fall;
        if (length < step.length) {
            step.length = length > 0.0 ? length : 0.0;
            step.leave = i;
        }
    }
    return step;
}

/* The step along the edge of nonbasic variable `enter`; `rest` is what the nonbasic coordinates
 * cost before it. */
static Step edge(const Search *search, Program *lp, int enter, double rest)
{
    int n = search->problem.n;
    entering_column(&search->problem, lp, enter);
    Step step = longest_step(lp, enter);
    if (step.length < SHORTEST_STEP)
        return step;
    step.cost = rest;
    if (enter < n) {
        double from = lp->value[enter];
        if (from > 0.0)
            step.cost -= term(search, enter, from);
        step.cost += term(search, enter, from + step.up * step.length);
    }
    for (int i = 0; i < lp->M; i++) {
        int j = lp->basis[i];
        if (j >= n)
            continue;
        double x = lp->basic_value[i] - step.up * step.length * lp->direction[i];
        int rises = step.up * lp->direction[i] < 0.0;
        if (i != step.leave && x > 0.0)
            step.cost += term(search, j, x);
        if (i == step.leave && rises)
            step.cost += term(search, j, lp->upper[j]);
    }
    return step;
}

/* Go to the neighbour; `direction` is the column of `enter`. */
static void move(const Problem *problem, Program *lp, int enter, Step step)
{
    double target = lp->value[enter] + step.up * step.length;
    for (int i = 0; i < lp->M; i++)
        lp->basic_value[i] -= step.up * step.length * lp->direction[i];
    if (step.leave < 0) {
        lp->value[enter] = step.up > 0.0 ? lp->upper[enter] : lp->lower[enter];
        return;
    }
    int leave = lp->basis[step.leave];
    int falls = step.up * lp->direction[step.leave] > 0.0;
    lp->value[leave] = falls ? lp->lower[leave] : lp->upper[leave];
    change_basis(problem, lp, step.leave, enter);
    lp->basic_value[step.leave] = target;
    lp->value[enter] = 0.0;
    lp->pivots++;
}

/* What the nonbasic coordinates cost. */
static double nonbasic_cost(const Search *search)
{
    const Program *lp = &search->program;
    double cost = 0.0;
    for (int j = 0; j < search->problem.n; j++)
        if (lp->position[j] < 0 && lp->value[j] > 0.0)
            cost += term(search, j, lp->value[j]);
    return cost;
}

/* What the basic coordinates cost. */
static double basic_cost(const Search *search)
{
    const Program *lp = &search->program;
    double cost = 0.0;
    for (int i = 0; i < lp->M; i++) {
        int j = lp->basis[i];
        if (j < search->problem.n && lp->basic_value[i] > 0.0)
            cost += term(search, j, lp->basic_value[i]);
    }
    return cost;
}

/* From the vertex of the basis to ever cheaper neighbours; the last vertex is left in the program's
 * point, and its cost is returned. Auxiliary variables must cost nothing. */
double walk(Search *search)
{
    const Problem *problem = &search->problem;
    Program *lp = &search->program;
    for (int steps = 0; steps < MOST_STEPS && now_seconds() <= lp->ends; steps++) {
        double rest = nonbasic_cost(search);
        double least = rest + basic_cost(search) - LEAST_FALL;
        int next = -1;
        for (int j = 0; j < problem->N + lp->M; j++) {
            if (lp->position[j] >= 0 || lp->lower[j] == lp->upper[j])
                continue;
            Step step = edge(search, lp, j, rest);
            if (step.length >= SHORTEST_STEP && step.cost < least) {
                least = step.cost;
                next = j;
            }
        }
        if (next < 0)
            break;
        Step step = edge(search, lp, next, rest); /* leaves its column in `direction` again */
        move(problem, lp, next, step);
    }
    primal_point(problem, lp);
    return descend(search, LAST_STAGE);
}

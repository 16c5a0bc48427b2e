/* Local search by successive linearisation (Frank and Wolfe with full steps).
 *
 * f is concave, so it lies below each of its linearisations: the minimum of a linearisation
 * over the set is a vertex that costs no more. Entropy has an infinite slope at zero, which
 * would keep every zero; the slope is therefore smoothed.
 */

#include "_tree.h"

/* Smoothing of the entropy's slope at zero: large first, so that a support can still change, then
 * small, so that the end point is a true local minimum. */
static const double SMOOTHING[LAST_STAGE + 1] = {0.05, 1e-3, 1e-9};

/* Linear programs of one local search. */
#define MOST_STEPS 24
/* Coordinates below this are zeros that the simplex has missed. */
#define ZERO 1e-13
/* A fall below this is rounding. */
#define LEAST_FALL 1e-12

/* Costs of the linearisation of f at the program's point. */
static void linearise(Search *search, double smoothing)
{
    Program *lp = &search->program;
    double at_zero = -log(smoothing);
    for (int j = 0; j < search->problem.n; j++) {
        double x = lp->point[j];
        double slope = x > smoothing ? -log(x) : at_zero;
        lp->cost[j] = slope - search->prices[j];
    }
    for (int j = search->problem.n; j < search->problem.N; j++)
        lp->cost[j] = -search->prices[j];
}

/* Local search from the program's point, inside the smaller set, from this smoothing on. With
 * the last stage alone no step goes uphill. The end point, a vertex, is left in the program;
 * returns its cost, or infinity if the first linear program did not finish. */
double descend(Search *search, int stage)
{
    const Problem *problem = &search->problem;
    Program *lp = &search->program;
    double best = INFINITY;
    set_rows(problem, lp, INNER_ROWS);
    open_box(problem, lp);
    for (int step = 0; step < MOST_STEPS; step++) {
        linearise(search, SMOOTHING[stage]);
        recompute(problem, lp);
        if (solve(problem, lp, -INFINITY, INFINITY) != LP_OPTIMAL)
            return step > 0 ? objective(search, lp->point) : INFINITY;
        if (!sharp_point(problem, lp))
            return INFINITY;
        drop_rows(problem, lp);
        for (int j = 0; j < problem->n; j++)
            if (lp->point[j] < ZERO)
                lp->point[j] = 0.0;
        double cost = objective(search, lp->point);
        int fell = cost < best - LEAST_FALL;
        if (stage == LAST_STAGE && !fell)
            return cost;
        if (fell)
            best = cost;
        else /* a local minimum at this smoothing */
            stage++;
    }
    return objective(search, lp->point);
}

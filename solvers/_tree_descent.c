/* Local search by successive linearisation (Frank and Wolfe with full steps).
 *
 * Wanted is a point v of small f(v) = sum_j [-v_j log v_j - y_j v_j], where y are the prices
 * (`_tree.h`). A step replaces f by its tangent at the point, whose slope in coordinate j is
 * -log v_j - y_j up to a constant, and goes to the vertex where the tangent is least: one linear
 * program. f is concave and lies below the tangent, so the vertex costs no more than the point. The
 * search ends where no step lowers f.
 *
 * Entropy has an infinite slope at zero, which would keep every zero. So the slope of a coordinate
 * below a smoothing is that at the smoothing: -log 0.05 = 3.0 at first. Where a smoothing gains no
 * more, the next smaller one takes over (a stage), down to one that is true to f.
 */

#include "_clock.h"
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

/* Costs of the linearisation of f at the program's point. The constant -1 in the slope of -x log x
 * is left out, for sum v = 1 makes it the same everywhere. */
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

/* Local search from the program's point, inside the smaller set, from this stage on; the cost of
 * its end point, a vertex, which is left in the program.
 *
 * Under the first smoothings a step may go uphill, in the last stage none does. No step begins when
 * the time of the search is over. Returns infinity if the first linear program did not finish, or a
 * solution could not be read sharply. */
double descend(Search *search, int stage)
{
    const Problem *problem = &search->problem;
    Program *lp = &search->program;
    double best = INFINITY;
    set_rows(problem, lp, INNER_ROWS);
    open_box(problem, lp);
    for (int step = 0; step < MOST_STEPS; step++) {
        if (step > 0 && now_seconds() > lp->ends)
            break;
        linearise(search, SMOOTHING[stage]);
        recompute(problem, lp);
        if (solve(problem, lp, -INFINITY, INFINITY) != LP_OPTIMAL)
            return step > 0 ? objective(search, lp->point) : INFINITY;
        if (!sharp_point(problem, lp))
            return INFINITY;
        /* rows that hold nothing here would only slow the next programs down */
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

/* A dual simplex for programs whose variables are all boxed:
 *
 *     min cost.x   over   [A, -I] (x, s) = 0,   lower <= (x, s) <= upper,
 *
 * with a slack s_k = a_k.x for each of the M rows (`_program.h` has the letters). Of the inverse of
 * the basis only some columns are stored, each in a slot: those of the active rows, whose slacks
 * are not basic (`_program_basis.c`).
 *
 * The basis is always dual feasible: nonbasic variables stand at the end that their reduced cost
 * asks for (`recompute`). Each iteration of `dual_simplex` takes a basic variable that lies
 * outside its ends to the nearer end, until there is none:
 *
 *     1. `leaving_position` the variable farthest outside, in units of its row of the inverse:
 *                           exact steepest edges, computed only for the basis at hand.
 *     2. `ratio_test`       the dual step. At a break point the reduced cost of a nonbasic
 *                           variable changes sign. It flips to its other end (`flip`), as long as
 *                           the dual value goes on rising (long steps). Where that ends, the
 *                           variable enters. Break points are taken in order from a heap.
 *     3. `pivot`            exchanges the two variables.
 *
 * For example, let x be least over 0 <= x <= 1 with the row 0.5 <= x <= 1. While the slack s is
 * basic, x stands at 0, for its reduced cost is 1; thus s = 0 is 0.5 below its lower end, and
 * leaves. The dual value rises by 0.5 for each unit of the step, up to the break point of x at 1. A
 * flip of x would take 1 from this slope, and 0.5 - 1 < 0, so x enters, at 0.5: the optimum.
 *
 * With more variables, let the slope be 5, and let the flips of two of them take 3 and 4 from it.
 * The first one flips, for 5 - 3 > 0; the second one enters, for 2 - 4 < 0. If the value rises
 * without end, the program has no point, and a ray of multipliers shows it (`leave_ray`).
 */

#include "_clock.h"
#include "_program.h"

/* Primal infeasibility below this, relative to one plus the value, counts as zero. */
#define PRIMAL_TOL 2e-13
/* Pivots between two looks at the clock, less one: a mask. */
#define CLOCK_MASK 31
/* Entries of the tableau below this do not limit the dual step. */
#define PIVOT_TOL 1e-9
/* Changes of the basis, of one program or of several, after which it is inverted anew. */
#define REFACTOR 60
/* A basis next to a singular one, entered by a pivot below one part in so many or left by one above
 * it, has an inverse of few digits, which the ones after it would inherit. */
#define ROUGH 1e5
/* Iterations after which a program is given up: so many for each row, and some. */
#define ITERATIONS_PER_ROW 40
#define LEAST_ITERATIONS 200
/* The heap of the ratio test first takes the break points up to twice the nearest one, then up to
 * eight times as far, and so on: mostly a few are enough. */
#define FIRST_REACH 2.0
#define NEXT_REACH 8.0
#define LEAST_REACH 1e-9

/* One iteration: the leaving variable and how far the dual step has gone. */
typedef struct {
    int place;     /* position of the leaving variable */
    int to_lower;  /* whether it goes to its lower end */
    double target; /* that end */
    double sign;   /* 1 if it has to rise, -1 if it has to fall */
    double slope;  /* rise of the dual value for each unit of the step */
    double length; /* of the step so far */
    double value;  /* dual value so far */
    int flipped;   /* whether some nonbasic variable went to its other end */
} Iteration;

/* Reduced costs d = cost - dual A from the multipliers; the slack of row k has cost 0, column
 * -e_k. */
HOT static void reduced_costs(const Problem *problem, Program *lp)
{
    int N = problem->N;
    double *reduced = lp->reduced;
    memcpy(reduced, lp->cost, sizeof(double) * (size_t)N);
    for (int k = 0; k < lp->M; k++) {
        double pi = lp->dual[k];
        reduced[N + k] = pi;
        if (pi == 0.0)
            continue;
        const double *row = lp->row[k];
        for (int j = 0; j < N; j++)
            reduced[j] -= pi * row[j];
    }
}

/* Multipliers, reduced costs, nonbasic and basic values from scratch for the present basis.
 *
 * Nonbasic variables go to the end that their reduced cost asks for, which makes the basis dual
 * feasible; x_B = -B^-1 (columns of the nonbasic variables times their values). */
HOT void recompute(const Problem *problem, Program *lp)
{
    int M = lp->M;
    int N = problem->N;
    double *load = lp->row_work;
    multipliers(lp);
    reduced_costs(problem, lp);
    for (int j = 0; j < N + M; j++)
        lp->value[j] = lp->reduced[j] >= 0.0 ? lp->lower[j] : lp->upper[j];
    for (int i = 0; i < M; i++)
        lp->value[lp->basis[i]] = 0.0;
    for (int k = 0; k < M; k++)
        load[k] = -lp->value[N + k];
    for (int j = 0; j < N; j++) {
        double x = lp->value[j];
        if (x == 0.0)
            continue;
        const double *column = column_of(lp, j);
        for (int k = 0; k < M; k++)
            load[k] += x * column[k];
    }
    solve_basis(problem, lp, load, lp->basic_value);
    for (int i = 0; i < M; i++)
        lp->basic_value[i] = -lp->basic_value[i];
}

/* Position of the variable to leave: the largest violation in units of its own row of the inverse
 * (dual steepest edge); -1 if none lies outside its ends. Rows of the inverse are summed for these
 * variables alone: mostly they are few, and rows may be many. */
static int leaving_position(const Problem *problem, Program *lp)
{
    int N = problem->N;
    int *outside = lp->candidates; /* the positions of variables outside their ends */
    double *excess = lp->row_work;
    int count = 0;
    for (int i = 0; i < lp->M; i++) {
        int j = lp->basis[i];
        double x = lp->basic_value[i];
        double below = lp->lower[j] - x;
        double above = x - lp->upper[j];
        double distance = below > above ? below : above;
        if (!(distance > PRIMAL_TOL * (1.0 + fabs(x))))
            continue;
        excess[i] = distance;
        outside[count++] = i;
    }
    if (count < 2)
        return count ? outside[0] : -1;
    int place = -1;
    double best = 0.0;
    double best_norm = 1.0;
    for (int t = 0; t < count; t++) {
        int i = outside[t];
        double norm = lp->basis[i] >= N ? 1.0 : 0.0;
        for (int slot = 0; slot < lp->active; slot++) {
            double entry = inverse_column(lp, slot)[i];
            norm += entry * entry;
        }
        double square = excess[i] * excess[i];
        /* square / norm > best / best_norm, without a division for each of them */
        if (place < 0 || square * best_norm > best * norm) {
            best = square;
            best_norm = norm;
            place = i;
        }
    }
    return place;
}

/* Row `place` of the tableau: x_B[place] + sum_j tableau_j x_j is constant over the nonbasic
 * x_j. */
HOT static void tableau_row(const Problem *problem, Program *lp, int place)
{
    int N = problem->N;
    int basic = lp->basis[place];
    double *tableau = lp->tableau;
    memset(tableau, 0, sizeof(double) * (size_t)(N + lp->M));
    if (basic >= N) { /* its row is not active: the inverse has minus the unit vector there */
        const double *row = lp->row[basic - N];
        for (int j = 0; j < N; j++)
            tableau[j] -= row[j];
        tableau[basic] = 1.0;
    }
    for (int slot = 0; slot < lp->active; slot++) {
        double factor = inverse_column(lp, slot)[place];
        int k = lp->row_of[slot];
        tableau[N + k] = -factor;
        if (factor == 0.0)
            continue;
        const double *row = lp->row[k];
        for (int j = 0; j < N; j++)
            tableau[j] += factor * row[j];
    }
}

/* The break points of the dual step, infinite for a variable that does not limit it. Returns the
 * least of them; the largest finite one is left in *farthest.
 *
 * To raise x_B[place], x_j must move so that tableau_j dx_j < 0: at its lower end tableau_j < 0, at
 * its upper end tableau_j > 0; mirrored when x_B[place] must fall. The sign folds both into one. */
STEER static double break_points(const Problem *problem, Program *lp, double sign, double *farthest)
{
    int variables = problem->N + lp->M;
    double least = INFINITY;
    double most = 0.0;
    const double *tableau = lp->tableau;
    const double *reduced = lp->reduced;
    const double *value = lp->value;
    const double *lower = lp->lower;
    const double *upper = lp->upper;
    double *ratio = lp->ratio;
    for (int j = 0; j < variables; j++) {
        double entry = sign * tableau[j];
        double point = fabs(reduced[j]) / fabs(entry);
        entry = value[j] == lower[j] ? -entry : entry;
        ratio[j] = entry > PIVOT_TOL && lower[j] < upper[j] ? point : INFINITY;
    }
    for (int i = 0; i < lp->M; i++)
        ratio[lp->basis[i]] = INFINITY;
    for (int j = 0; j < variables; j++) {
        double point = ratio[j];
        double finite = point < INFINITY ? point : 0.0;
        least = point < least ? point : least;
        most = finite > most ? finite : most;
    }
    *farthest = most;
    return least;
}

/* Restore the order of a heap of variables, the least key first, below place i. */
static void heap_down(int *heap, const double *key, int size, int i)
{
    int item = heap[i];
    double item_key = key[item];
    for (;;) {
        int child = 2 * i + 1;
        if (child >= size)
            break;
        if (child + 1 < size && key[heap[child + 1]] < key[heap[child]])
            child++;
        if (key[heap[child]] >= item_key)
            break;
        heap[i] = heap[child];
        i = child;
    }
    heap[i] = item;
}

/* Take the break points in (done, reach] into the heap of candidates; their number. */
static int gather_candidates(const Problem *problem, Program *lp, double done, double reach)
{
    int variables = problem->N + lp->M;
    int count = 0;
    for (int j = 0; j < variables; j++)
        if (lp->ratio[j] <= reach && lp->ratio[j] > done)
            lp->candidates[count++] = j;
    for (int i = count / 2 - 1; i >= 0; i--)
        heap_down(lp->candidates, lp->ratio, count, i);
    return count;
}

/* Move nonbasic variable j to its other end, and note in `row_work` what that changes in the
 * rows. */
static void flip(const Problem *problem, Program *lp, int j)
{
    double width = lp->upper[j] - lp->lower[j];
    double move = lp->value[j] == lp->lower[j] ? width : -width;
    lp->value[j] = lp->value[j] == lp->lower[j] ? lp->upper[j] : lp->lower[j];
    if (j >= problem->N) {
        lp->row_work[j - problem->N] -= move;
        return;
    }
    const double *column = column_of(lp, j);
    for (int k = 0; k < lp->M; k++)
        lp->row_work[k] += column[k] * move;
}

/* The long-step ratio test: pass break points, nearest first, while the dual value goes on rising.
 * Returns the entering variable, or -1 if nothing stops the step (the program is infeasible). */
static int ratio_test(const Problem *problem, Program *lp, Iteration *step)
{
    double farthest;
    double reach = break_points(problem, lp, step->sign, &farthest);
    double done = -1.0;
    int count = 0;
    for (int k = 0; k < lp->M; k++)
        lp->row_work[k] = 0.0;
    for (;;) {
        while (count == 0) {
            if (!(done < farthest))
                return -1;
            reach = done < 0.0 ? FIRST_REACH * reach + LEAST_REACH : NEXT_REACH * reach;
            if (reach > farthest)
                reach = farthest;
            count = gather_candidates(problem, lp, done, reach);
            done = reach;
        }
        int j = lp->candidates[0];
        double loss = fabs(lp->tableau[j]) * (lp->upper[j] - lp->lower[j]);
        step->value += step->slope * (lp->ratio[j] - step->length);
        step->length = lp->ratio[j];
        if (step->slope - loss <= 0.0)
            return j;
        step->slope -= loss;
        flip(problem, lp, j);
        step->flipped = 1;
        lp->candidates[0] = lp->candidates[--count];
        if (count > 0)
            heap_down(lp->candidates, lp->ratio, count, 0);
    }
}

/* The reduced costs after the dual step that makes the entering variable's vanish. */
HOT static void update_reduced_costs(const Problem *problem, Program *lp, int enter, int leave)
{
    int variables = problem->N + lp->M;
    double *reduced = lp->reduced;
    const double *tableau = lp->tableau;
    double theta = reduced[enter] / tableau[enter];
    for (int j = 0; j < variables; j++)
        reduced[j] -= theta * tableau[j];
    reduced[enter] = 0.0;
    reduced[leave] = -theta;
}

/* Exchange the leaving variable for `enter`: values, reduced costs and inverse. */
static void pivot(const Problem *problem, Program *lp, const Iteration *step, int enter)
{
    int M = lp->M;
    int place = step->place;
    int leave = lp->basis[place];
    if (step->flipped) {
        solve_basis(problem, lp, lp->row_work, lp->direction);
        for (int i = 0; i < M; i++)
            lp->basic_value[i] -= lp->direction[i];
    }
    entering_column(problem, lp, enter);
    double size = fabs(lp->direction[place]);
    double move = (lp->basic_value[place] - step->target) / lp->direction[place];
    update_reduced_costs(problem, lp, enter, leave);
    for (int i = 0; i < M; i++)
        lp->basic_value[i] -= move * lp->direction[i];
    lp->basic_value[place] = lp->value[enter] + move;
    change_basis(problem, lp, place, enter);
    lp->value[leave] = step->target;
    lp->pivots++;
    if (size > ROUGH || size < 1.0 / ROUGH || lp->updates >= REFACTOR) {
        factor(problem, lp);
        recompute(problem, lp);
    }
}

/* Leave the ray of an unbounded dual in `row_work`: multipliers that should prove the program
 * empty. */
static void leave_ray(const Problem *problem, Program *lp, double sign)
{
    for (int k = 0; k < lp->M; k++)
        lp->row_work[k] = sign * lp->tableau[problem->N + k];
}

/* Dual simplex from the present basis, which `recompute` has made dual feasible; one of the LP
 * codes.
 *
 * `*reached` is the value of the Lagrangian at the first multipliers, and at the last ones
 * afterwards. It steers only: the run stops early once it has passed `cutoff`. */
HOT int dual_simplex(const Problem *problem, Program *lp, double *reached, double cutoff)
{
    int limit = ITERATIONS_PER_ROW * lp->M + LEAST_ITERATIONS;
    lp->programs++;
    for (int iteration = 0; iteration < limit; iteration++) {
        int place = leaving_position(problem, lp);
        if (place < 0)
            return LP_OPTIMAL;
        if (*reached > cutoff)
            return LP_CUTOFF;
        if ((iteration & CLOCK_MASK) == CLOCK_MASK && now_seconds() > lp->ends)
            return LP_LIMIT;
        int leave = lp->basis[place];
        double x = lp->basic_value[place];
        Iteration step = {.place = place, .value = *reached};
        step.to_lower = x < lp->lower[leave];
        step.target = step.to_lower ? lp->lower[leave] : lp->upper[leave];
        step.slope = fabs(step.target - x);
        step.sign = step.to_lower ? 1.0 : -1.0;
        tableau_row(problem, lp, place);
        int enter = ratio_test(problem, lp, &step);
        if (enter < 0) {
            leave_ray(problem, lp, step.sign);
            return LP_INFEASIBLE;
        }
        *reached = step.value;
        pivot(problem, lp, &step, enter);
    }
    return LP_LIMIT;
}

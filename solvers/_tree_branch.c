/* One step of branch and bound: bounding a node by its chords, tightening its box, and splitting
 * it; and the first nodes of a tree.
 *
 * The problem (`_tree.h`): the least f(v) = sum_j [phi(v_j) - y_j v_j], phi(x) = -x log x, over the
 * probability vectors v that satisfy some linear rows. The prices y are fixed. Points of a cost
 * above the *cutoff* are of no interest, so a box whose bound exceeds it is dropped.
 *
 * `process_node` takes a node, a box [l, u] of the coordinates, through these steps:
 *
 *     1. `open_node`    makes the box the one at hand, with its parent's rows and basis.
 *     2. `bound_node`   lowers upper ends to what the sum 1 leaves (`tighten_by_sum`), bounds f
 *                       (`bound_box`), shrinks the box by reduced costs (`tighten_by_cost`), and
 *                       repeats this as long as the box shrinks enough. A node whose bound exceeds
 *                       the cutoff ends here.
 *     3. `split_node`   cuts the coordinate whose chord errs most at v, the point where the sum of
 *                       the chords is least. If f(v) is within `search->leaf` of the bound there is
 *                       nothing to gain: the node is closed, and its bound goes into
 *                       `search->closed`.
 *     4. `descend`      starts a local search from v, whose end may lower the cutoff.
 *
 * The bound. A term phi(x) - y_j x is concave, so on [l_j, u_j] it lies above its chord. For
 * example, on [0, 1/2] the chord of phi(x) = -x log x is x log 2: exact at both ends, and 0.173
 * where phi(1/4) is 0.347. The sum of the chords is linear (`set_chords`), so its least value over
 * the box and the rows is a linear program. The bound of the node is the Lagrangian of this
 * program. It is valid for any multipliers, however well the program was solved.
 *
 * The split. `split_in_two` makes the children [l_k, c] and [c, u_k]. At sparse points, where a
 * cut of one coordinate from zero only moves what it forbids to the next one, `split_by_first`
 * makes one child for each coordinate that may exceed c, and a last one in which none does. The
 * child of rank i has the coordinates of rank 0 .. i - 1 capped at c, so the children cover the
 * box.
 *
 * The root (`split_root`) is split by which coordinate is the largest, and by the interval of
 * LARGEST in which it lies.
 */

#include "_tree.h"

/* Ends of the intervals for the largest coordinate: the root is split by which coordinate is
 * the largest and in which of these it lies, so every other one is at most its upper end and at
 * most one minus its lower end (docs/explanation/optimum-theory.md, 'Splitting the root by the
 * largest coordinate'). */
static const double LARGEST[] = {0.0, 0.25, 1.0 / 3.0, 0.4, 0.5, 0.75, 1.0};
enum { INTERVALS = sizeof LARGEST / sizeof LARGEST[0] - 1 };

/* Programs of one node: its box is tightened by the reduced costs of each and solved again, as
 * long as that takes away as much as half of one interval. */
#define MOST_PASSES 4
#define ENOUGH_SHRUNK 0.5
/* Cuts leave each part at least this share of the interval. */
#define LEAST_PART 0.1
/* The sum of the ends of a box that misses the simplex is off by more. */
#define SUM_TOL 1e-7
/* Room left beyond what the sum allows, for its own rounding. */
#define SUM_ROOM 1e-12
/* Room left beyond what the reduced costs allow: relative and absolute. */
#define COST_ROOM 1e-9
#define LEAST_COST_ROOM 1e-14
/* The simplex goes on this far beyond the cutoff, so that the bound surely passes it, too. */
#define BEYOND_CUTOFF 1e-9
/* Coordinates below this do not count as positive. */
#define POSITIVE 1e-12

/* What the program of a box has proven. */
typedef struct {
    int status;   /* one of the LP codes */
    double bound; /* the best bound */
    /* the bound that the reduced costs in `tableau` belong to: not always the best one */
    double reduced;
} BoxBound;

/* ---------------------------------------------------------------- chords */

/* Slope of the chord of term j over [low, high], high > low; the caller adds the term at `low`. */
static double chord_slope(const Search *search, int j, double low, double high)
{
    return (phi(high) - phi(low)) / (high - low) - search->prices[j];
}

/* Costs of the chord program of the box at hand; returns its constant term.
 *
 * sum_j chord_j(x_j) = constant + cost.x, and chord_j <= term_j on the box because terms are
 * concave. */
static double set_chords(Search *search)
{
    const Problem *problem = &search->problem;
    Program *lp = &search->program;
    double constant = 0.0;
    double last = 1.0; /* most upper ends are equal to their neighbour's: one logarithm for all */
    double last_log = 0.0;
    open_box(problem, lp);
    for (int j = problem->n; j < problem->N; j++)
        lp->cost[j] = -search->prices[j];
    for (int j = 0; j < problem->n; j++) {
        double low = search->lower[j];
        double high = search->upper[j];
        double price = search->prices[j];
        lp->lower[j] = low;
        lp->upper[j] = high;
        if (low == 0.0) {
            if (!(high > 0.0))
                continue;
            if (high != last) {
                last = high;
                last_log = log(high);
            }
            lp->cost[j] = -last_log - price; /* phi(high) / high = -log(high) */
        } else if (!(high > low)) {
            constant += term(search, j, low);
        } else if (high - low > SMALLEST_WIDTH * high) {
            double slope = chord_slope(search, j, low, high);
            lp->cost[j] = slope;
            constant += phi(low) - price * low - slope * low;
        } else { /* too narrow for a quotient: the lower end value is a bound up to the width */
            double least = smaller(phi(low), phi(high));
            constant += least - price * low - fabs(price) * (high - low);
        }
    }
    return constant;
}

/* Solve the chord program of the box at hand from the basis at hand. The bound is infinite if
 * there is no point. */
static BoxBound bound_box(Search *search, double cutoff)
{
    const Problem *problem = &search->problem;
    Program *lp = &search->program;
    double constant = set_chords(search);
    BoxBound result;
    recompute(problem, lp);
    double start = lagrangian(problem, lp, lp->cost, lp->dual, constant, search->magnitude);
    result.bound = start;
    result.reduced = start;
    result.status = LP_CUTOFF;
    if (start > cutoff)
        return result;
    result.status = solve(problem, lp, start, cutoff + BEYOND_CUTOFF);
    if (result.status == LP_INFEASIBLE) {
        if (proves_empty(problem, lp, lp->row_work)) {
            result.bound = INFINITY;
            return result;
        }
        /* not proven: the box stays open, with the bound of whatever multipliers there are */
        result.status = LP_LIMIT;
        recompute(problem, lp);
    }
    multipliers(lp);
    result.reduced = lagrangian(problem, lp, lp->cost, lp->dual, constant, search->magnitude);
    result.bound = larger(result.reduced, start);
    return result;
}

/* A lower bound over the box with coordinate j confined to [low, high], from the reduced costs
 * in `tableau` and the Lagrangian `reduced` that they belong to: coordinate j's share of it is
 * exchanged for the least of its own concave function over the interval, which lies at an end
 * (docs/explanation/optimum-theory.md, 'By columns': confining). */
static double bound_confined(const Search *search, int j, double low, double high, double reduced)
{
    const Program *lp = &search->program;
    double d = lp->tableau[j];
    double share = d > 0.0 ? d * lp->lower[j] : d * lp->upper[j];
    double row_prices = d - lp->cost[j]; /* minus the prices of the rows in column j */
    double at_low = term(search, j, low) + row_prices * low;
    double at_high = term(search, j, high) + row_prices * high;
    double size = fabs(reduced) + fabs(share) + fabs(at_low) + fabs(at_high) + search->magnitude;
    double bound = reduced - share + smaller(at_low, at_high) - rounding_allowance(size);
    return isnan(bound) ? -INFINITY : bound; /* an overflow proves nothing */
}

/* ---------------------------------------------------------------- tightening */

/* Lower the upper ends to what the sum leaves to each coordinate; 0 if the box misses the
 * simplex. */
static int tighten_by_sum(Search *search)
{
    int n = search->problem.n;
    double low = 0.0;
    double high = 0.0;
    for (int j = 0; j < n; j++) {
        low += search->lower[j];
        high += search->upper[j];
    }
    if (low > 1.0 + SUM_TOL || high < 1.0 - SUM_TOL)
        return 0;
    double room = larger(1.0 - low + SUM_ROOM + DBL_EPSILON * n, 0.0);
    for (int j = 0; j < n; j++) {
        double top = search->lower[j] + room;
        if (top < search->upper[j])
            search->upper[j] = top;
    }
    return 1;
}

/* Tighten by the reduced costs in `tableau`, which belong to `bound`; returns the sum of the
 * shares taken away. With gap = cutoff - bound, a coordinate with reduced cost d > 0 at its
 * lower end cannot exceed lower + gap/d in any point that beats the cutoff, and mirrored
 * (docs/explanation/optimum-theory.md, 'By columns': tightening). */
static double tighten_by_cost(Search *search, double bound)
{
    const double *reduced = search->program.tableau;
    double gap = (search->cutoff - bound) * (1.0 + COST_ROOM) + LEAST_COST_ROOM;
    double shrunk = 0.0;
    for (int j = 0; j < search->problem.n; j++) {
        double d = reduced[j];
        double low = search->lower[j];
        double high = search->upper[j];
        if (high <= low)
            continue;
        if (d > 0.0) {
            double top = low + gap / d;
            if (top >= high)
                continue;
            shrunk += 1.0 - (top - low) / (high - low);
            search->upper[j] = top;
        } else if (d < 0.0) {
            double bottom = high + gap / d;
            if (bottom <= low)
                continue;
            shrunk += 1.0 - (high - bottom) / (high - low);
            search->lower[j] = bottom;
        }
    }
    return shrunk;
}

/* ---------------------------------------------------------------- splitting a node */

/* The coordinate whose chord errs most at the program's point; -1 if all are exact there. */
static int worst_chord(const Search *search)
{
    const Program *lp = &search->program;
    int worst = -1;
    double largest = 0.0;
    for (int j = 0; j < search->problem.n; j++) {
        double low = lp->lower[j];
        double high = lp->upper[j];
        double x = lp->point[j];
        if (x <= low || x >= high || high - low <= SMALLEST_WIDTH)
            continue;
        double slope = (phi(high) - phi(low)) / (high - low);
        double error = phi(x) - phi(low) - slope * (x - low);
        if (error > largest) {
            largest = error;
            worst = j;
        }
    }
    return worst;
}

/* Where the interval of coordinate k is cut: between the program's point and the middle, for at the
 * point alone a small coordinate leaves an upper part whose chord is hardly better than before. */
static float cut_place(const Search *search, int k)
{
    double low = search->lower[k];
    double high = search->upper[k];
    double part = LEAST_PART * (high - low);
    double x = search->program.point[k];
    x = (1.0 - search->to_middle) * x + search->to_middle * 0.5 * (low + high);
    return (float)clipped(x, low + part, high - part);
}

/* Whether few coordinates of the program's point are positive. Then cutting one coordinate at a
 * time would move what it forbids to the next one; where many are positive, it is three times
 * as fast. */
static int is_sparse(const Search *search)
{
    int n = search->problem.n;
    int positive = 0;
    for (int j = 0; j < n; j++)
        if (search->program.point[j] > POSITIVE)
            positive++;
    return positive <= search->sparse_share * n;
}

/* Sort the first `count` candidates by falling bounds. */
static void sort_by_gain(Search *search, int count)
{
    int *candidates = search->program.candidates;
    for (int i = 1; i < count; i++) {
        int j = candidates[i];
        int t = i;
        for (; t > 0 && search->gain[candidates[t - 1]] < search->gain[j]; t--)
            candidates[t] = candidates[t - 1];
        candidates[t] = j;
    }
}

/* The coordinates, from zero up, that may exceed `cut` below the cutoff, the dearest first:
 * they are left in `candidates`, with bounds of the child where each one exceeds it in `gain`.
 * Those that cannot exceed it are capped at once. Returns their number. */
static int exceeding_coordinates(Search *search, double reduced, double cut)
{
    Program *lp = &search->program;
    int count = 0;
    for (int j = 0; j < search->problem.n; j++) {
        double top = search->upper[j];
        if (search->lower[j] > 0.0 || lp->lower[j] > 0.0 || top <= cut)
            continue;
        double bound = bound_confined(search, j, cut, top, reduced);
        if (bound > search->cutoff) {
            search->upper[j] = cut;
            continue;
        }
        search->gain[j] = bound;
        lp->candidates[count++] = j;
    }
    sort_by_gain(search, count);
    return count;
}

/* Two children: coordinate k below the cut, and above it; -1 without memory. */
static int split_in_two(Search *search, int k, float cut, double bound)
{
    Box *box = box_new(search);
    if (!box)
        return -1;
    Node left = {bound, box, k, box->lower[k], cut, 0};
    Node right = {bound, box, k, cut, box->upper[k], 0};
    int failed = push_node(search, left) < 0 || push_node(search, right) < 0;
    box_release(search, box);
    return failed ? -1 : 0;
}

/* Children by which of the coordinates from zero up exceeds the cut first in order of their
 * bounds, or none does: that one child caps them all, where cuts one by one would move what
 * they forbid to the next coordinate. -1 without memory. */
static int split_by_first(Search *search, int k, float cut, double bound, double reduced)
{
    const int *candidates = search->program.candidates;
    int count = exceeding_coordinates(search, reduced, cut);
    Box *box = box_new(search);
    if (!box)
        return -1;
    box->cap = cut;
    /* all children share the box: the rank up to which each one caps makes the difference */
    for (int j = 0; j < search->problem.n; j++)
        box->rank[j] = INT16_MAX;
    for (int i = 0; i < count; i++)
        box->rank[candidates[i]] = (int16_t)i;
    int failed = 0;
    for (int i = 0; i < count && !failed; i++) {
        int j = candidates[i];
        Node child = {larger(search->gain[j], bound), box, j, cut, box->upper[j], i};
        failed = push_node(search, child) < 0;
    }
    Node none = {bound, box, k, 0.0f, cut, count};
    if (!failed)
        failed = push_node(search, none) < 0;
    box_release(search, box);
    return failed ? -1 : 0;
}

/* Split the node at hand, whose program's point costs `value`, or close it; -1 without memory. */
static int split_node(Search *search, const BoxBound *result, double value)
{
    double bound = result->bound;
    int k = worst_chord(search);
    if (k >= 0 && value - bound > search->leaf) {
        float cut = cut_place(search, k);
        int inside = cut > search->lower[k] && cut < search->upper[k];
        if (inside && !search->halves && search->lower[k] == 0.0 && is_sparse(search))
            return split_by_first(search, k, cut, bound, result->reduced);
        if (inside)
            return split_in_two(search, k, cut, bound);
    }
    if (bound < search->closed)
        search->closed = bound;
    return 0;
}

/* Make the node's box the one at hand, with its rows and its basis. */
static void open_node(Search *search, const Node *node)
{
    const Box *box = node->box;
    for (int j = 0; j < search->problem.n; j++) {
        search->lower[j] = box->lower[j];
        search->upper[j] = box->upper[j];
    }
    if (node->capped > 0) {
        for (int j = 0; j < search->problem.n; j++)
            if (box->rank[j] < node->capped && search->upper[j] > box->cap)
                search->upper[j] = box->cap;
    }
    search->lower[node->coordinate] = node->lower;
    search->upper[node->coordinate] = node->upper;
    box_load(search, box);
}

/* Bound the box at hand, tightening it on the way; 1 if it may hold a point below the cutoff, 0
 * if not, -1 without memory. `result->bound` comes in as the bound that was inherited. */
static int bound_node(Search *search, BoxBound *result)
{
    for (int pass = 0; pass < MOST_PASSES; pass++) {
        if (!tighten_by_sum(search))
            return 0;
        double inherited = result->bound;
        *result = bound_box(search, search->cutoff);
        if (result->status == LP_MEMORY)
            return -1;
        if (inherited > result->bound)
            result->bound = inherited;
        if (result->bound > search->cutoff)
            return 0;
        if (result->status != LP_OPTIMAL || result->reduced <= -INFINITY)
            break;
        if (tighten_by_cost(search, result->reduced) < ENOUGH_SHRUNK)
            break;
    }
    return 1;
}

/* Bound a node and split it, and look for points from its solution; -1 without memory. The caller
 * releases the node's box. */
int process_node(Search *search, Node node)
{
    Program *lp = &search->program;
    BoxBound result = {.status = LP_LIMIT, .bound = node.bound, .reduced = -INFINITY};
    search->nodes++;
    open_node(search, &node);
    int open = bound_node(search, &result);
    if (open <= 0)
        return open;
    primal_point(&search->problem, lp);
    drop_rows(&search->problem, lp); /* children inherit only rows that hold something */
    double value = objective(search, lp->point);
    if (result.status == LP_OPTIMAL)
        note_cost(search, value);
    if (split_node(search, &result, value) < 0)
        return -1;
    if (result.status != LP_OPTIMAL || value >= search->column_cutoff)
        return 0;
    if (search->points.count >= search->points.most)
        return 0;
    return keep_point(search, descend(search, LAST_STAGE));
}

/* ---------------------------------------------------------------- splitting the root */

/* Upper end of coordinate j if every coordinate is at most `high`. */
static double root_top(const Search *search, int j, double high)
{
    return smaller(search->problem.top[j], high);
}

/* Push the children in which coordinate part, part + parts, ... is the largest, in [low, high],
 * from the box in which all others are capped; -1 without memory. */
static int push_largest(Search *search, Box *box, double low, double high, int part, int parts)
{
    Program *lp = &search->program;
    double constant = set_chords(search);
    double base = lagrangian(&search->problem, lp, lp->cost, lp->dual, constant, search->magnitude);
    if (low == 0.0) { /* every coordinate is small: nothing is gained by naming the largest */
        Node all_small = {base, box, 0, box->lower[0], box->upper[0], 0};
        if (base > search->cutoff || part != 0)
            return 0;
        return push_node(search, all_small);
    }
    for (int j = 0; j < search->problem.n; j++) {
        double top = root_top(search, j, high);
        if (top < low || (parts > 1 && j % parts != part))
            continue;
        double bound = bound_confined(search, j, low, top, base);
        if (bound > search->cutoff)
            continue;
        Node child = {bound, box, j, float_below(low), float_above(top), 0};
        if (push_node(search, child) < 0)
            return -1;
    }
    return 0;
}

/* The nodes in which the largest coordinate lies in [low, high]; -1 without memory. */
static int split_interval(Search *search, double low, double high, int part, int parts)
{
    const Problem *problem = &search->problem;
    Program *lp = &search->program;
    int n = problem->n;
    if (high * n < 1.0)
        return 0; /* the sum could not be 1 */
    for (int j = 0; j < n; j++) {
        search->lower[j] = 0.0;
        search->upper[j] = root_top(search, j, high);
    }
    /* each interval starts from the basis of the last one, inverted anew */
    drop_rows(problem, lp);
    factor(problem, lp);
    BoxBound all = bound_box(search, INFINITY);
    if (all.status == LP_MEMORY)
        return -1;
    if (all.bound == INFINITY)
        return 0;
    /* one box with the cap of the others is shared; each child changes one coordinate */
    double cap = smaller(high, 1.0 - low);
    for (int j = 0; j < n; j++)
        search->upper[j] = smaller(search->upper[j], cap);
    Box *box = box_new(search);
    if (!box)
        return -1;
    int failed = push_largest(search, box, low, high, part, parts) < 0;
    box_release(search, box);
    return failed ? -1 : 0;
}

/* The first nodes of the tree, or of one of several parts of it that are searched side by side; -1
 * without memory. */
int split_root(Search *search, int part, int parts)
{
    reset_rows(&search->problem, &search->program);
    for (int t = 0; t < INTERVALS; t++)
        if (split_interval(search, LARGEST[t], LARGEST[t + 1], part, parts) < 0)
            return -1;
    return 0;
}

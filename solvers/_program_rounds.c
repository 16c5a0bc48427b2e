/* A linear program over a set of probability vectors (`_program.h`) whose rows are too many to
 * list: its memory, the rows that come and go, and its solution in rounds of new rows.
 *
 * A program holds the fixed rows and some of the others, called cuts. It is solved in rounds
 * (`solve_in_rounds`):
 *
 *     1. The dual simplex finds the optimum over the rows at hand (`dual_simplex`).
 *     2. The separator appends rows that this point violates (`append_cut`). None: the point is the
 *        optimum over all rows.
 *     3. The simplex goes on from the same basis, which is still dual feasible, with the slacks of
 *        the new rows basic.
 *
 * For example, min x over x >= 0.1, x >= 0.3 and x >= 0.2, with only the first row at hand, has
 * the optimum 0.1. The separator finds x >= 0.3, and the second round ends at 0.3; the third row
 * is never needed. A node stops after a few rounds: a program that lacks rows has a smaller
 * optimum, so its bound is weaker but still one.
 *
 * Numbers of rows. Rows 0 .. fixed - 1 are the fixed ones, the cuts follow without gaps, and the
 * slack of row k is variable N + k. These arrays refer to the numbers and change together: `basis`
 * (which variable is basic at position i), `position` (its inverse, -1 for nonbasic variables),
 * and `row_of` with `slot_of` (which columns of the inverse are stored). Only rows with a nonbasic
 * slack, the active ones, hold the optimum and have a column there. With 2 fixed rows and the cuts
 * 2, 3 and 4, dropping row 2 moves cut 4 into its place (`renumber_last_row`).
 *
 * Order: memory; rows that come and go; solving.
 */

#include "_program.h"

#include "_clock.h"

/* A point that misses a row by more, relative to one plus the row, is computed once more. */
#define SHARP 4e-13
/* Lower ends of cuts lie this far (relative) below their least value: they must never bind. */
#define CUT_SLACK 1e-9
/* Rounds of new rows in the program of a node. It is cut short beyond, which costs sharpness alone,
 * and children go on with the rows of their parent. */
#define NODE_ROUNDS 8
/* Rounds of new rows in the program of a local search, which needs a member of the set. */
#define MOST_ROUNDS 500
/* Rounds after which rows that hold nothing go: a program that needs hundreds of rounds would carry
 * hundreds of rows. They go only if the value has risen since, so that nothing goes in circles. */
#define DROP_ROUNDS 10
/* Least relative rise of the value that counts. */
#define LEAST_RISE 1e-12

/* ---------------------------------------------------------------- memory */

/* The next `count` items of `size` bytes of a block, at multiples of 16 bytes; NULL while only
 * measuring. */
static void *carve(char *block, size_t *used, size_t count, size_t size)
{
    void *start = block ? block + *used : NULL;
    *used += (count * size + 15) / 16 * 16;
    return start;
}

/* Lay the arrays out in the block, or only measure them if there is none yet; bytes in all. */
static size_t lay_out(Program *lp, const Problem *problem, char *block)
{
    size_t N = (size_t)problem->N;
    size_t rows = (size_t)lp->capacity;
    size_t variables = N + rows;
    size_t used = 0;
    lp->row = carve(block, &used, rows, sizeof(double *));
    lp->cut = carve(block, &used, rows, sizeof(Cut *));
    lp->columns = carve(block, &used, N * rows, sizeof(double));
    lp->lower = carve(block, &used, variables, sizeof(double));
    lp->upper = carve(block, &used, variables, sizeof(double));
    lp->cost = carve(block, &used, variables, sizeof(double));
    lp->value = carve(block, &used, variables, sizeof(double));
    lp->reduced = carve(block, &used, variables, sizeof(double));
    lp->tableau = carve(block, &used, variables, sizeof(double));
    lp->ratio = carve(block, &used, variables, sizeof(double));
    lp->position = carve(block, &used, variables, sizeof(int));
    lp->candidates = carve(block, &used, variables, sizeof(int));
    lp->basis = carve(block, &used, rows, sizeof(int));
    lp->basic_value = carve(block, &used, rows, sizeof(double));
    lp->inverse = carve(block, &used, rows * rows, sizeof(double));
    lp->row_of = carve(block, &used, rows, sizeof(int));
    lp->slot_of = carve(block, &used, rows, sizeof(int));
    lp->dual = carve(block, &used, rows, sizeof(double));
    lp->row_work = carve(block, &used, rows, sizeof(double));
    lp->direction = carve(block, &used, rows, sizeof(double));
    lp->keep = carve(block, &used, rows, sizeof(char));
    lp->point = carve(block, &used, N, sizeof(double));
    lp->saved_point = carve(block, &used, N, sizeof(double));
    return used;
}

/* Make `entries` row k of the matrix. Some sums run along rows, others along columns, so it is
 * kept in both orders. */
static void place_row(const Problem *problem, Program *lp, int k, const double *entries)
{
    size_t stride = (size_t)lp->capacity;
    double *target = lp->columns + k;
    lp->row[k] = entries;
    for (int j = 0; j < problem->N; j++)
        target[(size_t)j * stride] = entries[j];
}

/* A program with room for `capacity` rows, the fixed ones at hand and every slack basic; -1 without
 * memory, and then there is nothing to free. */
int program_init(Program *lp, const Problem *problem, int capacity)
{
    memset(lp, 0, sizeof *lp);
    lp->capacity = capacity;
    size_t bytes = lay_out(lp, problem, NULL);
    lp->memory = calloc(bytes, 1);
    if (!lp->memory)
        return -1;
    lay_out(lp, problem, lp->memory);
    for (int k = 0; k < problem->fixed; k++)
        place_row(problem, lp, k, problem->rows + (size_t)k * (size_t)problem->N);
    lp->M = problem->fixed;
    lp->deadline = INFINITY;
    lp->ends = INFINITY;
    for (int j = 0; j < problem->N + capacity; j++)
        lp->position[j] = -1;
    set_rows(problem, lp, OUTER_ROWS);
    slack_basis(problem, lp);
    return 0;
}

/* ---------------------------------------------------------------- rows that come and go */

/* One reference less. */
void cut_release(Cut *cut)
{
    if (--cut->refs == 0)
        free(cut);
}

/* Release all cuts; the basis is invalid afterwards, for it may have had their slacks. */
static void forget_cuts(const Problem *problem, Program *lp)
{
    for (int k = problem->fixed; k < lp->M; k++) {
        cut_release(lp->cut[k]);
        lp->position[problem->N + k] = -1;
    }
    lp->M = problem->fixed;
}

/* Release the cuts and the block; does nothing to a program that was never set up. */
void program_free(Program *lp, const Problem *problem)
{
    if (lp->memory)
        forget_cuts(problem, lp);
    free(lp->memory);
    memset(lp, 0, sizeof *lp);
}

/* The ends of the slack of cut k. Its lower end never binds: it only makes the variable boxed, as
 * the dual simplex needs it to start from any basis. */
static void bound_cut(const Problem *problem, Program *lp, int k)
{
    int slack = problem->N + k;
    double least = lp->cut[k]->least;
    double top = lp->inner ? problem->cut_inner : problem->cut_outer;
    lp->upper[slack] = top;
    lp->lower[slack] = (least < top ? least : top) - CUT_SLACK * (1.0 + fabs(least));
    lp->cost[slack] = 0.0;
}

/* Give the rows the ends of the smaller set (INNER_ROWS) or of the larger one (OUTER_ROWS). */
void set_rows(const Problem *problem, Program *lp, int inner)
{
    size_t bytes = sizeof(double) * (size_t)problem->fixed;
    int N = problem->N;
    lp->inner = inner;
    memcpy(lp->lower + N, inner ? problem->inner_lower : problem->outer_lower, bytes);
    memcpy(lp->upper + N, inner ? problem->inner_upper : problem->outer_upper, bytes);
    memset(lp->cost + N, 0, bytes);
    for (int k = problem->fixed; k < lp->M; k++)
        bound_cut(problem, lp, k);
}

/* Append a row whose slack is basic and has this value; takes over one reference to the cut.
 *
 * The new row of the inverse is a_B times the old inverse, a_B the row's entries at the basic
 * structurals. The basis stays dual feasible, for no multiplier changes. */
void append_cut(const Problem *problem, Program *lp, Cut *cut, double value)
{
    int N = problem->N;
    int k = lp->M++;
    int slack = N + k;
    double *basic_entries = lp->row_work;
    lp->cut[k] = cut;
    place_row(problem, lp, k, cut->entries);
    for (int i = 0; i < k; i++) {
        int j = lp->basis[i];
        basic_entries[i] = j < N ? cut->entries[j] : 0.0;
    }
    for (int slot = 0; slot < lp->active; slot++) {
        double *column = inverse_column(lp, slot);
        double sum = 0.0;
        for (int i = 0; i < k; i++)
            sum += basic_entries[i] * column[i];
        column[k] = sum;
    }
    lp->basis[k] = slack;
    lp->position[slack] = k;
    lp->basic_value[k] = value;
    lp->reduced[slack] = 0.0;
    lp->value[slack] = 0.0;
    lp->tableau[slack] = 0.0;
    bound_cut(problem, lp, k);
}

/* Take position i out of the basis; the last position takes its place.
 *
 * The slack there is basic, so its row has no column in the inverse: only an entry goes in each. */
static void drop_position(Program *lp, int i)
{
    int last = lp->M - 1;
    lp->position[lp->basis[i]] = -1;
    if (i == last)
        return;
    for (int slot = 0; slot < lp->active; slot++) {
        double *column = inverse_column(lp, slot);
        column[i] = column[last];
    }
    lp->basis[i] = lp->basis[last];
    lp->basic_value[i] = lp->basic_value[last];
    lp->position[lp->basis[i]] = i;
}

/* Give the last row the number k, which is free: with its entries, the ends and values of its
 * slack, and where basis or inverse refer to it. */
static void renumber_last_row(const Problem *problem, Program *lp, int k)
{
    int last = lp->M - 1;
    if (k == last)
        return;
    int from = problem->N + last;
    int to = problem->N + k;
    lp->cut[k] = lp->cut[last];
    place_row(problem, lp, k, lp->cut[k]->entries);
    lp->lower[to] = lp->lower[from];
    lp->upper[to] = lp->upper[from];
    lp->value[to] = lp->value[from];
    lp->reduced[to] = lp->reduced[from];
    lp->position[to] = lp->position[from];
    lp->position[from] = -1;
    if (lp->position[to] >= 0) {
        lp->basis[lp->position[to]] = to;
    } else {
        lp->slot_of[k] = lp->slot_of[last];
        lp->row_of[lp->slot_of[k]] = k;
    }
}

/* Drop the cuts whose slacks are basic. They hold nothing, so the basis of the others stays
 * optimal. */
void drop_rows(const Problem *problem, Program *lp)
{
    /* from the last one down, so that the row that takes a number has been looked at already */
    for (int k = lp->M - 1; k >= problem->fixed; k--) {
        int place = lp->position[problem->N + k];
        if (place < 0)
            continue;
        cut_release(lp->cut[k]);
        drop_position(lp, place);
        renumber_last_row(problem, lp, k);
        lp->M--;
    }
}

/* Back to the fixed rows of the larger set, every slack basic. */
void reset_rows(const Problem *problem, Program *lp)
{
    forget_cuts(problem, lp);
    set_rows(problem, lp, OUTER_ROWS);
    slack_basis(problem, lp);
}

/* The fixed rows and these cuts, with the ends of the larger set; the basis has to be loaded
 * next. */
void load_rows(const Problem *problem, Program *lp, Cut *const *cuts, int count)
{
    forget_cuts(problem, lp);
    for (int t = 0; t < count; t++) {
        int k = lp->M++;
        cuts[t]->refs++;
        lp->cut[k] = cuts[t];
        place_row(problem, lp, k, cuts[t]->entries);
    }
    set_rows(problem, lp, OUTER_ROWS);
}

/* Every structural variable between 0 and its upper bound, at no cost. */
void open_box(const Problem *problem, Program *lp)
{
    for (int j = 0; j < problem->N; j++) {
        lp->lower[j] = 0.0;
        lp->upper[j] = problem->top[j];
        lp->cost[j] = 0.0;
    }
}

/* ---------------------------------------------------------------- solving */

/* Drop rows if the value of the program has risen above *floor, which then rises, too.
 *
 * Without a rise the same rows could go and come back for ever. */
static void drop_after_rise(const Problem *problem, Program *lp, double *floor)
{
    double value = 0.0;
    for (int j = 0; j < problem->N; j++)
        value += lp->cost[j] * lp->point[j];
    if (!(value > *floor))
        return;
    *floor = value + LEAST_RISE * (1.0 + fabs(value));
    drop_rows(problem, lp);
}

/* Solve, take in the rows that the solution violates, and again, until it violates none.
 *
 * The number of rounds is bounded; LP_LIMIT where they do not suffice, or no room is left although
 * every row holds something. */
static int solve_in_rounds(const Problem *problem, Program *lp, double start, double cutoff)
{
    double reached = start;
    double floor = -INFINITY;
    int rounds = lp->inner ? MOST_ROUNDS : NODE_ROUNDS;
    for (int round = 1; round <= rounds; round++) {
        if (now_seconds() > lp->deadline)
            return LP_LIMIT;
        int status = dual_simplex(problem, lp, &reached, cutoff);
        if (status != LP_OPTIMAL)
            return status;
        primal_point(problem, lp);
        if (round % DROP_ROUNDS == 0)
            drop_after_rise(problem, lp, &floor);
        int added = problem->separator->separate(problem->separator, problem, lp);
        if (added == 0)
            return LP_OPTIMAL;
        if (added == SEPARATE_MEMORY)
            return LP_MEMORY;
        if (added == SEPARATE_FULL) {
            int before = lp->M;
            drop_rows(problem, lp);
            if (lp->M == before)
                return LP_LIMIT;
        }
    }
    return LP_LIMIT;
}

/* Solve the program from the basis at hand; one of the LP codes.
 *
 * `start` is the value of the Lagrangian at the present multipliers; the run stops early once
 * it has surely passed `cutoff`. With cuts, a program over the smaller set that is not solved
 * leaves `point` as it was, a member of the set, for the points on the way violate rows. */
int solve(const Problem *problem, Program *lp, double start, double cutoff)
{
    double reached = start;
    size_t bytes = sizeof(double) * (size_t)problem->N;
    /* all rows are fixed: one run solves the program */
    if (!problem->separator)
        return dual_simplex(problem, lp, &reached, cutoff);
    memcpy(lp->saved_point, lp->point, bytes);
    int status = solve_in_rounds(problem, lp, start, cutoff);
    if (lp->inner && status != LP_OPTIMAL)
        memcpy(lp->point, lp->saved_point, bytes);
    return status;
}

/* Read the structurals of the present basis into `point`, clipped to the box. */
void primal_point(const Problem *problem, Program *lp)
{
    for (int j = 0; j < problem->N; j++) {
        int place = lp->position[j];
        double x = place >= 0 ? lp->basic_value[place] : lp->value[j];
        lp->point[j] = clipped(x, lp->lower[j], lp->upper[j]);
    }
}

/* Whether `point` satisfies every row at hand up to SHARP. */
static int meets_rows(const Problem *problem, Program *lp)
{
    int M = lp->M;
    double *activity = lp->row_work;
    for (int k = 0; k < M; k++)
        activity[k] = 0.0;
    for (int j = 0; j < problem->N; j++) {
        double x = lp->point[j];
        if (x == 0.0)
            continue;
        const double *column = column_of(lp, j);
        for (int k = 0; k < M; k++)
            activity[k] += x * column[k];
    }
    for (int k = 0; k < M; k++) {
        double below = lp->lower[problem->N + k] - activity[k];
        double above = activity[k] - lp->upper[problem->N + k];
        double excess = (below > above ? below : above) / (1.0 + fabs(activity[k]));
        if (!(excess <= SHARP))
            return 0; /* too large, or not a number */
    }
    return 1;
}

/* Read the solution to the last digits; whether all rows at hand hold.
 *
 * Basic values that were huge on the way lose digits. They are then computed once more, from a
 * fresh inverse. */
int sharp_point(const Problem *problem, Program *lp)
{
    primal_point(problem, lp);
    if (meets_rows(problem, lp))
        return 1;
    factor(problem, lp);
    recompute(problem, lp);
    double reached = -INFINITY;
    if (dual_simplex(problem, lp, &reached, INFINITY) != LP_OPTIMAL)
        return 0;
    primal_point(problem, lp);
    return meets_rows(problem, lp);
}

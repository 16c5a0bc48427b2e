/* The separator of listed rows: it gives a program the rows a.x <= LISTED_END that its point x
 * violates most.
 *
 * `listed_rows` stores every row as a Cut, and the same numbers by columns. After each round the
 * program calls `separate_listed`: (1) the values a.x of all rows, column by column, which skips
 * the many zeros of x (`find_activity`); (2) the row of largest excess above its end; (3) if the
 * excess is above the tolerance and the program does not have the row yet, it is appended
 * (`append_cut`); (4) again from 2, up to MOST_TAKEN rows. For example, excesses of 0.3, -0.1, 0.5
 * and 0.2 append row 2 and then row 0.
 */

#include "_listed_rows.h"

/* Violations below this, relative to one plus the size of a row, are rounding in the smaller set,
 * which points must lie in, and worth no row in the larger one, for which bounds hold. A program's
 * own `cut_tolerance` is in units of the cost: a row of a tiny set may hold much of that. */
#define INNER_TOL 2e-13
#define OUTER_TOL 1e-10
/* Rows that one round takes in at most, the most violated ones: mostly two or three bind in the
 * end, and each of the others costs as much. One to eight were about as fast. */
#define MOST_TAKEN 2

/* The rows (count x N), with their columns; NULL without memory. */
ListedRows *listed_rows(const double *rows, int count, int N)
{
    ListedRows *list = calloc(1, sizeof *list);
    if (!list)
        return NULL;
    list->separator.separate = separate_listed;
    list->separator.release = release_listed;
    list->cuts = calloc((size_t)count, sizeof *list->cuts);
    list->columns = malloc(sizeof(double) * (size_t)count * (size_t)N);
    list->activity = malloc(sizeof(double) * (size_t)count);
    if (!list->cuts || !list->columns || !list->activity) {
        release_listed(&list->separator);
        return NULL;
    }
    for (int k = 0; k < count; k++) {
        Cut *cut = malloc(sizeof(Cut) + sizeof(double) * (size_t)N);
        if (!cut) {
            release_listed(&list->separator);
            return NULL;
        }
        cut->refs = 1;
        cut->least = INFINITY;
        cut->weight = 0.0;
        for (int j = 0; j < N; j++) {
            double entry = rows[(size_t)k * (size_t)N + (size_t)j];
            cut->entries[j] = entry;
            list->columns[(size_t)j * (size_t)count + (size_t)k] = entry;
            if (entry < cut->least)
                cut->least = entry;
            if (fabs(entry) > cut->weight)
                cut->weight = fabs(entry);
        }
        list->cuts[k] = cut;
        list->count = k + 1;
    }
    return list;
}

/* Release the rows and the list; programs that still hold rows keep theirs. */
void release_listed(Separator *self)
{
    ListedRows *list = (ListedRows *)self;
    for (int k = 0; k < list->count; k++)
        cut_release(list->cuts[k]);
    free(list->cuts);
    free(list->columns);
    free(list->activity);
    free(list);
}

/* The values of all rows at a point. */
HOT static void find_activity(const ListedRows *list, const double *point, int N)
{
    int count = list->count;
    double *activity = list->activity;
    memset(activity, 0, sizeof(double) * (size_t)count);
    for (int j = 0; j < N; j++) {
        double x = point[j];
        if (x == 0.0)
            continue;
        const double *column = list->columns + (size_t)j * (size_t)count;
        for (int k = 0; k < count; k++)
            activity[k] += x * column[k];
    }
}

/* Whether the program has this row at hand: then what is missing there is the simplex's own. */
static int is_at_hand(const Problem *problem, const Program *lp, const Cut *cut)
{
    for (int k = problem->fixed; k < lp->M; k++)
        if (lp->cut[k] == cut)
            return 1;
    return 0;
}

/* Append the most violated rows at the program's point; their number, or a code. */
int separate_listed(Separator *self, const Problem *problem, Program *lp)
{
    ListedRows *list = (ListedRows *)self;
    double tolerance = lp->inner ? INNER_TOL : OUTER_TOL;
    find_activity(list, lp->point, problem->N);
    int added = 0;
    while (added < MOST_TAKEN) {
        int worst = -1;
        double excess = 0.0;
        for (int k = 0; k < list->count; k++) {
            double over = list->activity[k] - LISTED_END;
            if (over > excess) {
                excess = over;
                worst = k;
            }
        }
        if (worst < 0)
            break;
        Cut *cut = list->cuts[worst];
        if (!(excess > tolerance * (1.0 + cut->weight)))
            break;
        double value = list->activity[worst];
        list->activity[worst] = -INFINITY; /* the next pass finds the next one */
        if (is_at_hand(problem, lp, cut))
            continue;
        if (lp->M >= lp->capacity)
            return added ? added : SEPARATE_FULL;
        cut->refs++;
        append_cut(problem, lp, cut, value);
        added++;
    }
    return added;
}

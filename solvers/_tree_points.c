/* The points that a search finds, each kept once, and the cutoff that follows from their costs.
 *
 * `keep_point` is given the program's point and its cost f. (1) A point cheaper than
 * `column_cutoff` is added, unless one with the same support and the same numbers is there
 * (`add_point`). (2) The cost lowers the cutoff: only nodes that may beat it clearly are still of
 * interest (`note_cost`),
 *
 *     cutoff = cost - tolerance - slack |cost|.
 *
 * For example, cost -0.5, tolerance 0.001 and slack 0.1 give the cutoff -0.551: nodes of a larger
 * bound are dropped, and a tree without open nodes proves f >= -0.551.
 *
 * Points are compressed rows: (0.5, 0, 0.5) and (0, 1, 0) are start 0 2 3, index 0 2 1 and value
 * 0.5 0.5 1.
 */

#include "_tree.h"

/* A vertex that is met twice is met with the same support and the same cost to many digits. */
#define SAME_COST 1e-10
#define SAME_VALUE 1e-9
/* Points and entries that there is room for at first. */
#define FIRST_POINTS 256
#define FIRST_ENTRIES 1024

/* f at a point. */
double objective(const Search *search, const double *point)
{
    double total = 0.0;
    for (int j = 0; j < search->problem.n; j++)
        if (point[j] > 0.0)
            total += term(search, j, point[j]);
    for (int j = search->problem.n; j < search->problem.N; j++)
        total -= search->prices[j] * point[j];
    return total;
}

/* Whether point number i is this one, which has `support` positive coordinates. */
static int is_same(const Points *points, int i, const double *point, int support, double cost)
{
    int first = points->start[i];
    int end = points->start[i + 1];
    if (end - first != support || fabs(points->cost[i] - cost) > SAME_COST)
        return 0;
    for (int t = first; t < end; t++)
        if (!(fabs(point[points->index[t]] - points->value[t]) < SAME_VALUE))
            return 0;
    return 1;
}

/* Make room for one more point; -1 without memory. */
static int reserve_point(Points *points)
{
    if (points->count + 2 <= points->capacity)
        return 0;
    int capacity = points->capacity ? 2 * points->capacity : FIRST_POINTS;
    int *start = realloc(points->start, sizeof(int) * (size_t)(capacity + 1));
    if (!start)
        return -1;
    points->start = start;
    double *cost = realloc(points->cost, sizeof(double) * (size_t)capacity);
    if (!cost)
        return -1;
    points->cost = cost;
    points->capacity = capacity;
    return 0;
}

/* Make room for so many more entries; -1 without memory. */
static int reserve_entries(Points *points, int more)
{
    if (points->entries + more <= points->entry_capacity)
        return 0;
    int capacity = 2 * (points->entries + more) + FIRST_ENTRIES;
    int *index = realloc(points->index, sizeof(int) * (size_t)capacity);
    if (!index)
        return -1;
    points->index = index;
    double *value = realloc(points->value, sizeof(double) * (size_t)capacity);
    if (!value)
        return -1;
    points->value = value;
    points->entry_capacity = capacity;
    return 0;
}

/* Add a point unless it is there or there are enough; -1 without memory. */
static int add_point(Points *points, const double *point, int n, double cost)
{
    int support = 0;
    if (points->count >= points->most)
        return 0;
    for (int j = 0; j < n; j++)
        if (point[j] > 0.0)
            support++;
    for (int i = 0; i < points->count; i++)
        if (is_same(points, i, point, support, cost))
            return 0;
    if (reserve_point(points) < 0 || reserve_entries(points, support) < 0)
        return -1;
    if (points->count == 0)
        points->start[0] = 0;
    for (int j = 0; j < n; j++) {
        if (!(point[j] > 0.0))
            continue;
        points->index[points->entries] = j;
        points->value[points->entries] = point[j];
        points->entries++;
    }
    points->cost[points->count] = cost;
    points->count++;
    points->start[points->count] = points->entries;
    return 0;
}

/* A point of this cost exists: nodes are of interest only below it, less the tolerance and the
 * share `slack` of the cost (far from optimal prices a sharper bound would enumerate a sublevel
 * set for nothing). */
void note_cost(Search *search, double cost)
{
    if (cost >= search->best)
        return;
    double allowed = search->slack * fabs(cost);
    double cutoff = cost - search->tolerance - allowed;
    search->best = cost;
    search->leaf = LEAF_SHARE * (search->tolerance + allowed);
    if (cutoff < search->cutoff)
        search->cutoff = cutoff;
}

/* Keep the program's point if it is cheap enough; -1 without memory. Without slack only the
 * minimum is asked for, so from then on only cheaper points are. */
int keep_point(Search *search, double cost)
{
    int n = search->problem.n;
    int wanted = cost < search->column_cutoff;
    if (wanted && add_point(&search->points, search->program.point, n, cost) < 0)
        return -1;
    note_cost(search, cost);
    if (search->slack == 0.0 && wanted)
        search->column_cutoff = cost;
    return 0;
}

/* Release the arrays of the points. */
void points_free(Points *points)
{
    free(points->start);
    free(points->index);
    free(points->value);
    free(points->cost);
}

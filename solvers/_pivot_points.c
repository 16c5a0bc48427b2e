/* The vertices of all bases, each once and in lexicographic order.
 *
 * A vertex that several bases share is found once for each of them, with numbers that differ by
 * rounding. `pivot_sort_points` merges such twins without comparing all pairs: (1) each vertex
 * that may have twins gets a key, its product with fixed weights in [0, 1) (`list_shared`); (2)
 * they are sorted by key; (3) points within the tolerance of each other in every coordinate have
 * keys within a window, so only those are compared (`close_by`); (4) of two twins one stays, with
 * the smaller support (`merge_twin`); (5) what is left is sorted (`by_row`).
 */

#include "_pivot.h"

/* -1, 0 or 1, as qsort asks for. */
static int compare_doubles(double x, double y)
{
    return (x > y) - (x < y);
}

/* Order of the random projections. */
static int by_key(const void *a, const void *b)
{
    const Point *x = *(const Point *const *)a;
    const Point *y = *(const Point *const *)b;
    return compare_doubles(x->key, y->key);
}

/* Lexicographic order of the dense rows: where one has a zero and the other an entry, the entry is
 * larger. */
static int by_row(const void *a, const void *b)
{
    const Point *x = *(const Point *const *)a;
    const Point *y = *(const Point *const *)b;
    for (int i = 0; i < x->count && i < y->count; i++) {
        if (x->column[i] != y->column[i])
            return x->column[i] < y->column[i] ? 1 : -1;
        if (x->value[i] != y->value[i])
            return compare_doubles(x->value[i], y->value[i]);
    }
    return x->count - y->count;
}

/* Whether two points differ by at most the tolerance in every coordinate: a merge of their
 * supports. */
static int close_by(const Point *x, const Point *y, double tolerance)
{
    int i = 0;
    int j = 0;
    while (i < x->count || j < y->count) {
        double difference;
        if (j == y->count || (i < x->count && x->column[i] < y->column[j]))
            difference = x->value[i++];
        else if (i == x->count || y->column[j] < x->column[i])
            difference = y->value[j++];
        else
            difference = x->value[i++] - y->value[j++];
        if (fabs(difference) > tolerance)
            return 0;
    }
    return 1;
}

/* Mark `other` as a twin of `point`, which takes the smaller of the two supports: entries that only
 * one of them has are rounding. */
static void merge_twin(Point *point, Point *other)
{
    other->twin = 1;
    point->degenerate |= other->degenerate;
    if (other->count >= point->count)
        return;
    point->column = other->column;
    point->value = other->value;
    point->count = other->count;
}

/* Point every vertex at its entries, and list those that may have twins; their number. */
static size_t list_shared(Walk *w, Point **order)
{
    size_t shared = 0;
    for (size_t i = 0; i < w->points; i++) {
        Point *point = w->point + i;
        point->column = w->column + point->start;
        point->value = w->value + point->start;
        if (!point->shared)
            continue;
        for (int e = 0; e < point->count; e++)
            point->key += point->value[e] * pivot_unit((uint64_t)point->column[e]);
        order[shared++] = point;
    }
    return shared;
}

/* Mark vertices that repeat another; returns the number of different ones, their order in
 * `order`, which has room for all. Close points have close keys, as weights of the projection
 * are below one. */
size_t pivot_sort_points(Walk *w, double tolerance, Point **order)
{
    size_t different = 0;
    size_t shared = list_shared(w, order);
    double window = 2.0 * w->basis.capacity * tolerance;
    qsort(order, shared, sizeof *order, by_key);
    for (size_t i = 0; i < shared; i++) {
        if (order[i]->twin)
            continue;
        for (size_t j = i + 1; j < shared && order[j]->key - order[i]->key <= window; j++)
            if (!order[j]->twin && close_by(order[i], order[j], tolerance))
                merge_twin(order[i], order[j]);
    }
    for (size_t i = 0; i < w->points; i++)
        if (!w->point[i].twin)
            order[different++] = w->point + i;
    qsort(order, different, sizeof *order, by_row);
    return different;
}

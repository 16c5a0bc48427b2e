/* The rows of an uncertain set that a point v violates most (docs/explanation/optimum-theory.md,
 * 'Uncertain sets, with rows found by sorting'). The set and its letters are those of
 * `_robust_rows.h`.
 *
 * Steps of `separate_uncertain`, which the program calls after each round:
 *
 *     1. `find_extremes`   w_x = v_x / point_x, sorted; then h_s and g_s, the largest and the
 *                          smallest p.w over the box F_s of every secret s.
 *     2. `separate_ratio`  the largest excess h_s - ratio g_t over all pairs.
 *     3. `separate_lift`   the largest excess over the limit `most`, then over `least`, with the
 *                          shares that are worst for each secret (`extreme_mean`).
 *     4. `take_row`        the violated rows go into the program, in terms of v.
 *
 * Each extreme is a fractional knapsack: every place first has its lower end, and what is left of
 * the mass 1 goes to the places of largest (smallest) w, as much as each can take. For example,
 * lower ends 0.2, 0.3 and 0.2, widths 0.2 each and w = (3, 1, 2): the room 0.3 goes to place 0
 * (0.2) and then to place 2 (0.1), so p = (0.4, 0.3, 0.3) and h = 2.1.
 *
 * That p is a vertex of F_s, and its row is linear in v. The row of the pair (s, t), for example,
 * is (p - ratio q).w <= 0, where p attains h_s and q attains g_t (`add_vertex`).
 */

#include "_robust_rows.h"

/* Violations below this are left: of the larger set, where a row fewer costs next to nothing,
 * and of the smaller one, whose margin and exact repair take care of it. Relative to one plus
 * the row. */
#define OUTER_TOL 1e-9
#define INNER_TOL 1e-12

/* Which end of a knapsack is looked for. */
enum { SMALLEST = -1, LARGEST = 1 };

/* Work space of the sorts; -1 without memory (release_uncertain frees what there is). */
int init_uncertain_scratch(UncertainRows *set)
{
    size_t places = (size_t)set->n + 1;
    size_t size = (size_t)set->size;
    set->order = malloc(sizeof(int) * places);
    set->w = calloc(places, sizeof(double));
    set->row = calloc(places, sizeof(double));
    set->largest = calloc(size, sizeof(double));
    set->smallest = calloc(size, sizeof(double));
    set->share = calloc(size, sizeof(double));
    set->ranked = calloc(size, sizeof(RankedSecret));
    if (!set->order || !set->w || !set->row || !set->largest || !set->smallest || !set->share ||
        !set->ranked)
        return -1;
    for (int j = 0; j <= set->n; j++)
        set->order[j] = j;
    return 0;
}

/* Release the set with all copies of its arguments. */
void release_uncertain(Separator *self)
{
    UncertainRows *set = (UncertainRows *)self;
    free(set->lower);
    free(set->spread);
    free(set->room);
    free(set->scale);
    free(set->share_lower);
    free(set->share_spread);
    free(set->order);
    free(set->w);
    free(set->row);
    free(set->largest);
    free(set->smallest);
    free(set->share);
    free(set->ranked);
    free(set);
}

/* ---------------------------------------------------------------- knapsacks */

/* Sort the places by falling w. The order of the last call is nearly right, so insertion is
 * fast. */
static void sort_places(UncertainRows *set)
{
    for (int i = 1; i <= set->n; i++) {
        int place = set->order[i];
        double key = set->w[place];
        int t = i;
        for (; t > 0 && set->w[set->order[t - 1]] < key; t--)
            set->order[t] = set->order[t - 1];
        set->order[t] = place;
    }
}

/* The part of p.w above that of the lower ends, over the box of s: the room goes to the places
 * of the largest (or smallest) w, as much as each can take. */
static double fill_room(const UncertainRows *set, int s, int end)
{
    int places = set->n + 1;
    const double *spread = set->spread + (size_t)s * (size_t)places;
    double room = set->room[s];
    double sum = 0.0;
    for (int i = 0; i < places && room > 0.0; i++) {
        int place = set->order[end == LARGEST ? i : places - 1 - i];
        double taken = spread[place] < room ? spread[place] : room;
        sum += taken * set->w[place];
        room -= taken;
    }
    return sum;
}

/* h and g of every secret at a point. */
HOT static void find_extremes(UncertainRows *set, const double *point)
{
    int places = set->n + 1;
    for (int j = 0; j < set->n; j++)
        set->w[j] = point[j] * set->scale[j];
    set->w[set->n] = set->rest;
    sort_places(set);
    for (int s = 0; s < set->size; s++) {
        const double *lower = set->lower + (size_t)s * (size_t)places;
        double base = 0.0;
        for (int j = 0; j < places; j++)
            base += lower[j] * set->w[j];
        set->largest[s] = base + fill_room(set, s, LARGEST);
        set->smallest[s] = base + fill_room(set, s, SMALLEST);
    }
}

/* Add `factor` times the p of largest (smallest) p.w over the box of s to the row being made. */
static void add_vertex(UncertainRows *set, int s, int end, double factor)
{
    int places = set->n + 1;
    const double *lower = set->lower + (size_t)s * (size_t)places;
    const double *spread = set->spread + (size_t)s * (size_t)places;
    double room = set->room[s];
    for (int j = 0; j < places; j++)
        set->row[j] += factor * lower[j];
    for (int i = 0; i < places && room > 0.0; i++) {
        int place = set->order[end == LARGEST ? i : places - 1 - i];
        double taken = spread[place] < room ? spread[place] : room;
        set->row[place] += factor * taken;
        room -= taken;
    }
}

/* The value of secret t in the mean of s: its own value for s itself. */
static double mean_value(const double *self, const double *others, int s, int t)
{
    return t == s ? self[t] : others[t];
}

/* The order of two keys; of equal ones the secret with the smaller number comes first, so that
 * there is one order only. */
static int by_key(const void *first, const void *second)
{
    const RankedSecret *a = first;
    const RankedSecret *b = second;
    if (a->key != b->key)
        return a->key < b->key ? -1 : 1;
    return a->secret < b->secret ? -1 : 1;
}

/* Rank the secrets by `others`, as a mean towards this end fills the shares. */
static void rank_secrets(UncertainRows *set, const double *others, int end)
{
    for (int t = 0; t < set->size; t++) {
        set->ranked[t].key = -end * others[t];
        set->ranked[t].secret = t;
    }
    qsort(set->ranked, (size_t)set->size, sizeof(RankedSecret), by_key);
}

/* Fill the share of secret t as far as there is room; what that adds to the mean. */
static double fill_share(UncertainRows *set, int t, double value, double *room)
{
    double taken = smaller(set->share_spread[t], *room);
    set->share[t] += taken;
    *room -= taken;
    return taken * value;
}

/* The least (or largest) mean pi_s self_s + sum over t != s of pi_t others_t over the box of the
 * shares; these stay in `share`. The secrets were ranked by `others`, and s takes the place that
 * its own value has among them, so that no mean needs a sort of its own. */
static double extreme_mean(UncertainRows *set, const double *self, const double *others, int s,
                           int end)
{
    double mean = 0.0;
    double room = set->share_room;
    for (int t = 0; t < set->size; t++) {
        set->share[t] = set->share_lower[t];
        mean += set->share_lower[t] * mean_value(self, others, s, t);
    }
    RankedSecret own = {-end * self[s], s};
    int placed = 0;
    for (int i = 0; i < set->size && room > 0.0; i++) {
        int t = set->ranked[i].secret;
        if (!placed && by_key(&own, &set->ranked[i]) < 0) {
            mean += fill_share(set, s, self[s], &room);
            placed = 1;
        }
        if (t != s && room > 0.0)
            mean += fill_share(set, t, others[t], &room);
    }
    if (!placed && room > 0.0)
        mean += fill_share(set, s, self[s], &room);
    return mean;
}

/* ---------------------------------------------------------------- rows */

/* Begin a new row. */
static void clear_row(UncertainRows *set)
{
    memset(set->row, 0, sizeof(double) * ((size_t)set->n + 1));
}

/* Append the row being made, whose value at the point is `value`. In terms of v its entries are
 * row_x / point_x, and the last place is `rest` times sum v = 1. Returns 0, or one of the codes of
 * `separate`. */
static int take_row(const UncertainRows *set, const Problem *problem, Program *lp, double value)
{
    int n = set->n;
    if (lp->M >= lp->capacity)
        return SEPARATE_FULL;
    Cut *cut = malloc(sizeof(Cut) + sizeof(double) * (size_t)n);
    if (!cut)
        return SEPARATE_MEMORY;
    cut->refs = 1;
    cut->least = INFINITY;
    cut->weight = 0.0;
    for (int j = 0; j < n; j++) {
        double entry = set->row[j] * set->scale[j] + set->rest * set->row[n];
        cut->entries[j] = entry;
        if (entry < cut->least)
            cut->least = entry;
        if (fabs(entry) > cut->weight)
            cut->weight = fabs(entry);
    }
    append_cut(problem, lp, cut, value);
    return 0;
}

/* Whether a row of this value is violated, where h of its secret is `size`. */
static int is_violated(const Problem *problem, const Program *lp, double value, double size)
{
    /* points must lie in the smaller set; the larger one only gives bounds, so there the
     * tolerance of the program may be the coarser one */
    double end = lp->inner ? problem->cut_inner : problem->cut_outer;
    double tolerance = lp->inner ? INNER_TOL : larger(lp->cut_tolerance, OUTER_TOL);
    return value > end + tolerance * (1.0 + size);
}

/* By how much h_s <= ratio g_t fails. */
static double ratio_excess(const UncertainRows *set, int s, int t)
{
    return set->largest[s] - set->ratio * set->smallest[t];
}

/* The first secret of the least g but for `other`: against it h <= ratio g is hardest. */
static int least_smallest(const UncertainRows *set, int other)
{
    int least = -1;
    for (int t = 0; t < set->size; t++)
        if (t != other && (least < 0 || set->smallest[t] < set->smallest[least]))
            least = t;
    return least;
}

/* Append the row h_s <= ratio g_t if it fails as much as the worst one; 1, 0, or a code. */
static int take_ratio_row(UncertainRows *set, const Problem *problem, Program *lp, int s, int t,
                          double worst)
{
    double excess = ratio_excess(set, s, t);
    if (s == t || excess < worst || !is_violated(problem, lp, excess, set->largest[s]))
        return 0;
    clear_row(set);
    add_vertex(set, s, LARGEST, 1.0);
    add_vertex(set, t, SMALLEST, -set->ratio);
    int failed = take_row(set, problem, lp, excess);
    return failed ? failed : 1;
}

/* Append the worst row h_s <= ratio g_t, with those that fail as much against one of its members;
 * their number, or a code. */
static int separate_ratio(UncertainRows *set, const Problem *problem, Program *lp)
{
    int size = set->size;
    int worst_s = -1;
    int worst_t = -1;
    int added = 0;
    double worst = -INFINITY;
    int least = least_smallest(set, -1);
    int next = least_smallest(set, least);
    for (int s = 0; s < size; s++) {
        int t = s == least ? next : least;
        if (!(ratio_excess(set, s, t) > worst))
            continue;
        worst = ratio_excess(set, s, t);
        worst_s = s;
        worst_t = t;
    }
    if (worst_s < 0)
        return 0;
    for (int k = 0; k < 2 * size; k++) {
        int against_t = k < size;
        if (!against_t && k - size == worst_t)
            continue; /* the worst pair is done */
        int s = against_t ? k : worst_s;
        int t = against_t ? worst_t : k - size;
        int outcome = take_ratio_row(set, problem, lp, s, t, worst);
        if (outcome == SEPARATE_FULL && added > 0)
            break;
        if (outcome < 0)
            return outcome;
        added += outcome;
    }
    return added;
}

/* Append the row that fails most of h_s <= most mean (end = LARGEST) or g_s >= least mean
 * (SMALLEST); 1, 0, or a code. The worst mean of h_s is the least one, and mirrored. */
static int separate_lift(UncertainRows *set, const Problem *problem, Program *lp, int end)
{
    double limit = end == LARGEST ? set->most : set->least;
    const double *self = end == LARGEST ? set->largest : set->smallest;
    const double *others = end == LARGEST ? set->smallest : set->largest;
    int worst = -1;
    double excess = -INFINITY;
    rank_secrets(set, others, -end);
    for (int s = 0; s < set->size; s++) {
        double mean = extreme_mean(set, self, others, s, -end);
        double fails = end * (self[s] - limit * mean);
        if (!(fails > excess))
            continue;
        excess = fails;
        worst = s;
    }
    if (worst < 0 || !is_violated(problem, lp, excess, set->largest[worst]))
        return 0;
    extreme_mean(set, self, others, worst, -end); /* `share` held those of the last secret */
    clear_row(set);
    for (int t = 0; t < set->size; t++) {
        double factor = -end * limit * set->share[t];
        if (t == worst)
            add_vertex(set, t, end, end + factor);
        else if (factor != 0.0)
            add_vertex(set, t, -end, factor);
    }
    int failed = take_row(set, problem, lp, excess);
    return failed ? failed : 1;
}

/* Append the most violated row of each kind at the program's point; their number, or a code. */
int separate_uncertain(Separator *self, const Problem *problem, Program *lp)
{
    UncertainRows *set = (UncertainRows *)self;
    int added = 0;
    find_extremes(set, lp->point);
    if (set->ratio < INFINITY && set->size > 1) {
        added = separate_ratio(set, problem, lp);
        if (added < 0)
            return added;
    }
    if (set->most < INFINITY) {
        int outcome = separate_lift(set, problem, lp, LARGEST);
        if (outcome < 0)
            return outcome;
        added += outcome;
    }
    if (set->least > 0.0) {
        int outcome = separate_lift(set, problem, lp, SMALLEST);
        if (outcome < 0)
            return outcome;
        added += outcome;
    }
    return added;
}

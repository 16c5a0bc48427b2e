/* A first basis for the walk, or a proof that the set is empty.
 *
 * One more column, number n, strictly inside every row's bounds, carries all weight: it alone is a
 * first basis. Each round solves the basis at hand and makes the move that lowers the weight of
 * column n fastest (`best_gain`). Once column n leaves, the basis is one of the set.
 *
 * Empty sets. Weights sum to 1 and no slack of a row of size one exceeds WIDEST. So the largest
 * rate of a column, plus WIDEST times the rate of each tight row, plus their errors, bounds what
 * is left to gain. For example, a weight of 0.3 where the moves can take at most 0.2 proves by
 * duality that the set is empty.
 */

#include "_pivot.h"

/* Entries and bounds are at most 1 in size, those of the first column 2. */
static const double WIDEST = 4.0;
/* Rates up to this many times their noise are no gain. */
static const double CLEAR_RATE = 4.0;
/* Pivots after which the start is given up: some, and so many for each column and row. */
enum { LEAST_ROUNDS = 1000, ROUNDS_PER_ELEMENT = 50 };

/* The best move of one round. */
typedef struct {
    ptrdiff_t column; /* that enters, or -1 */
    int r;            /* tight row that leaves its bound, or -1 */
    double rate;      /* fall of the weight for each unit of it */
    double left;      /* upper bound of what all moves together can still take from the weight */
} Gain;

/* Find the move that lowers the weight of column n fastest. */
static Gain best_gain(Basis *b, const Problem *p)
{
    int k = b->k;
    int at = b->position[p->n];
    const double *h = b->inverse + at * k;
    double most = 0.0;
    double left = b->value_error[at] + NOISE * b->size * b->size;
    Gain gain = {-1, -1, CLEAR_RATE * NOISE * b->size, 0.0};
    for (int q = 0; q < k - 1; q++)
        b->row[q] = row_entries(p, row_of_code(b->rows[q]));
    pivot_combine(p->n, k - 1, h, b->row, h[k - 1], b->rate);
    for (ptrdiff_t j = 0; j < p->n; j++) {
        most = b->rate[j] > most ? b->rate[j] : most;
        if (b->position[j] < 0 && b->rate[j] > gain.rate) {
            gain.rate = b->rate[j];
            gain.column = j;
        }
    }
    for (int q = 0; q < k - 1; q++) {
        double rate = is_upper(b->rows[q]) ? h[q] : -h[q];
        left += rate > 0.0 ? WIDEST * rate : 0.0;
        if (rate > gain.rate) {
            gain.rate = rate;
            gain.column = -1;
            gain.r = q;
        }
    }
    if (gain.column >= 0)
        gain.r = -1;
    gain.left = most + left;
    return gain;
}

/* Walk to a first basis of the set and make it the only one found: DONE, EMPTY, FAILED or
 * NO_MEMORY. */
int pivot_find_start(Walk *w)
{
    const Problem *p = &w->problem;
    Basis *b = &w->basis;
    int32_t first[2] = {1, (int32_t)p->n};
    ptrdiff_t rounds = LEAST_ROUNDS + ROUNDS_PER_ELEMENT * (p->n + p->m);
    pivot_basis_load(b, first);
    for (; rounds > 0; rounds--) {
        if (pivot_basis_solve(b, p))
            return FAILED;
        Gain gain = best_gain(b, p);
        if (b->value[b->position[p->n]] > gain.left)
            return EMPTY;
        if (gain.column < 0 && gain.r < 0)
            return FAILED;
        int32_t code = pivot_decide(w, gain.column, gain.r);
        if (code < 0)
            return FAILED;
        w->count = 0;
        w->arena_used = 0;
        if (pivot_append(w, gain.column, gain.r, code))
            return NO_MEMORY;
        int gone = code < b->k && b->columns[code] == p->n;
        pivot_basis_load(b, w->arena);
        if (gone)
            return DONE;
    }
    return FAILED;
}

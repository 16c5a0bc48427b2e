/* The walk over all bases, breadth first: each is found once, by a hash of its set of elements.
 *
 * `pivot_walk` begins with the one basis that `pivot_find_start` has found, and takes the bases
 * found so far in turn:
 *
 *     1. load and solve it, and store its vertex                               (`store`)
 *     2. decide what leaves at each of its moves: a column enters, or a tight
 *        row leaves its bound; by the fast ratio test where that is clear, else
 *        by the exact one                                                      (`foresee_moves`)
 *     3. append the neighbours whose hash is not in the table yet              (`expand`)
 *
 * It is done when the list has no basis left. The graph of the bases is connected (`_pivot.h`), so
 * all of them have been found.
 *
 * Records. The arena has the bases as numbers k, T, R, one after the other. A neighbour costs no
 * record until its hash turns out to be new: the hash is the exclusive or of one random word for
 * each element, so a move changes it by two words (`toggled`). The hashes of all moves are
 * computed first, which gives the memory time to bring the slots (`foresee`).
 */

#include "_pivot.h"

/* Bases between two looks at pending signals: some milliseconds. */
static const size_t BETWEEN_PAUSES = 4096;
/* Slots of the first hash table, less one; the table is at most half full. */
static const size_t FIRST_MASK = 1023;
/* Items that an array grows by at least. */
static const size_t LEAST_GROWTH = 64;

/* Two words that name a basis: the exclusive or of the words of its elements, so that a move
 * changes them by those of what comes and what goes. */
typedef struct {
    uint64_t place; /* where the search in the table begins */
    uint64_t tag;   /* what is stored there: 2^-64 for each pair that two bases have the same */
} Hash;

/* Ask for memory that is needed soon. */
static inline void prefetch(const void *address)
{
#if !defined(_MSC_VER)
    __builtin_prefetch(address);
#else
    (void)address;
#endif
}

/* Room for `need` items in an array of `*size`; -1 without memory. */
static int grow(void **array, size_t *size, size_t need, size_t item)
{
    if (need <= *size)
        return 0;
    size_t larger = need + *size / 2 + LEAST_GROWTH;
    void *moved = realloc(*array, larger * item);
    if (!moved)
        return -1;
    *array = moved;
    *size = larger;
    return 0;
}

/* Memory of a walk whose problem is set; -1 without it. */
int pivot_walk_init(Walk *w)
{
    if (pivot_basis_init(&w->basis, &w->problem) || pivot_basis_init(&w->probe, &w->problem))
        return -1;
    w->mask = FIRST_MASK;
    w->slot = calloc(w->mask + 1, sizeof(uint64_t));
    w->record = malloc(sizeof(int32_t) * 2 * ((size_t)w->basis.capacity + 1));
    return w->slot && w->record ? 0 : -1;
}

/* Release everything; arrays that were never allocated are NULL. */
void pivot_walk_free(Walk *w)
{
    pivot_problem_free(&w->problem);
    pivot_basis_free(&w->basis);
    pivot_basis_free(&w->probe);
    free(w->record);
    free(w->arena);
    free(w->start);
    free(w->slot);
    free(w->column);
    free(w->value);
    free(w->point);
}

/* ---------------------------------------------------------------- bases found */

/* The hash after one element has come or gone: a column, or p->width + the code of a tight row. */
static Hash toggled(const Problem *p, Hash hash, ptrdiff_t element)
{
    hash.place ^= p->place[element];
    hash.tag ^= p->tag[element];
    return hash;
}

/* The hash of a record: k, T, R. */
static Hash record_hash(const Problem *p, const int32_t *record)
{
    int k = record[0];
    Hash hash = {0, 0};
    for (int i = 1; i <= k; i++)
        hash = toggled(p, hash, record[i]);
    for (int i = k + 1; i < 2 * k; i++)
        hash = toggled(p, hash, p->width + record[i]);
    return hash;
}

/* Insert the tag if it is new; whether it was. Linear probing, in a table at most half full. */
static int note(uint64_t *slot, size_t mask, Hash hash)
{
    uint64_t tag = hash.tag == 0 ? 1 : hash.tag; /* 0 marks a free slot */
    for (size_t i = hash.place & mask;; i = (i + 1) & mask) {
        if (slot[i] == tag)
            return 0;
        if (slot[i] == 0) {
            slot[i] = tag;
            return 1;
        }
    }
}

/* A table of twice the size; -1 without memory. */
static int rehash(Walk *w)
{
    size_t size = 2 * (w->mask + 1);
    uint64_t *slot = calloc(size, sizeof(uint64_t));
    if (!slot)
        return -1;
    for (size_t i = 0; i < w->count; i++)
        note(slot, size - 1, record_hash(&w->problem, w->arena + w->start[i]));
    free(w->slot);
    w->slot = slot;
    w->mask = size - 1;
    return 0;
}

/* Write the record of the basis after a move: `column` (or the tight row r) comes, `code` goes.
 * Returns its length. */
static int write_successor(const Basis *b, ptrdiff_t column, int r, int32_t code, int32_t *record)
{
    int k = b->k;
    int last = 0;
    for (int i = 0; i < k; i++)
        if (i != code)
            record[++last] = b->columns[i];
    if (column >= 0)
        record[++last] = (int32_t)column;
    record[0] = last;
    for (int q = 0; q < k - 1; q++)
        if (q != r)
            record[++last] = b->rows[q];
    if (code >= k)
        record[++last] = code - k;
    return last + 1;
}

/* Add the basis after a move to those found; -1 without memory. */
int pivot_append(Walk *w, ptrdiff_t column, int r, int32_t code)
{
    size_t need = w->arena_used + 2 * (size_t)w->basis.k + 4;
    if (grow((void **)&w->arena, &w->arena_size, need, sizeof(int32_t)))
        return -1;
    if (grow((void **)&w->start, &w->count_size, w->count + 1, sizeof(size_t)))
        return -1;
    int32_t *record = w->arena + w->arena_used;
    w->start[w->count++] = w->arena_used;
    w->arena_used += (size_t)write_successor(&w->basis, column, r, code, record);
    return 0;
}

/* ---------------------------------------------------------------- neighbours */

/* What leaves, decided exactly; -1 if that is impossible. Where several quantities reach their end
 * within rounding of one step, the lengths of their steps do not decide which is first (1 - 1e-15
 * against 1). The bases behind them do: take the first that is feasible. */
int32_t pivot_decide(Walk *w, ptrdiff_t column, int r)
{
    Basis *b = &w->basis;
    Basis *probe = &w->probe;
    int32_t code = pivot_ratio_exact(b, &w->problem, column, r);
    if (code < 0 || b->ties == 1)
        return code;
    for (int c = 0; c < b->ties; c++) {
        write_successor(b, column, r, b->code[c], w->record);
        pivot_basis_load(probe, w->record);
        if (pivot_basis_solve(probe, &w->problem) == 0 && probe->least_tilt > 0.0)
            return b->code[c];
    }
    return code;
}

/* Note what leaves at move number `move`, and the hash of the neighbour behind it. `hash` is that
 * of the basis together with the element that comes. */
static void foresee(Walk *w, ptrdiff_t move, Hash hash, int32_t code)
{
    const Problem *p = &w->problem;
    Basis *b = &w->basis;
    b->leave[move] = code;
    if (code < 0) {
        w->failures++;
        return;
    }
    ptrdiff_t element = code < b->k ? b->columns[code] : p->width + (code - b->k);
    hash = toggled(p, hash, element);
    b->next_place[move] = hash.place;
    b->next_tag[move] = hash.tag;
    prefetch(w->slot + (hash.place & w->mask));
}

/* Decide what leaves at every move of the basis at hand: columns first, then the k - 1 tight
 * rows. */
static void foresee_moves(Walk *w, Hash hash)
{
    const Problem *p = &w->problem;
    Basis *b = &w->basis;
    double doubt;
    int fast = pivot_ratio_fast(b, p, &doubt) == 0;
    for (ptrdiff_t j = 0; j < p->n; j++) {
        b->leave[j] = -1;
        if (b->position[j] >= 0)
            continue;
        int32_t code = fast ? pivot_leaving(b, j, doubt) : -1;
        if (code < 0)
            code = pivot_decide(w, j, -1);
        foresee(w, j, toggled(p, hash, j), code);
    }
    for (int r = 0; r < b->k - 1; r++) {
        int32_t code = fast ? pivot_leaving_row(b, p, r, doubt) : -1;
        if (code < 0)
            code = pivot_decide(w, -1, r);
        foresee(w, p->n + r, toggled(p, hash, p->width + b->rows[r]), code);
    }
}

/* Add the neighbours of the basis at hand that are new; -1 without memory. */
static int expand(Walk *w, size_t record)
{
    Basis *b = &w->basis;
    ptrdiff_t n = w->problem.n;
    foresee_moves(w, record_hash(&w->problem, w->arena + record));
    for (ptrdiff_t move = 0; move < n + b->k - 1; move++) {
        Hash next = {b->next_place[move], b->next_tag[move]};
        if (b->leave[move] < 0 || !note(w->slot, w->mask, next))
            continue;
        ptrdiff_t column = move < n ? move : -1;
        int r = move < n ? -1 : (int)(move - n);
        if (pivot_append(w, column, r, b->leave[move]))
            return -1;
        if (2 * w->count > w->mask && rehash(w))
            return -1;
    }
    return 0;
}

/* ---------------------------------------------------------------- vertices */

/* Store the vertex of the basis at hand: its support in ascending order, without zeros. */
static int store(Walk *w)
{
    const Basis *b = &w->basis;
    size_t need = w->entries + (size_t)b->k;
    if (grow((void **)&w->column, &w->column_size, need, sizeof(int32_t)) ||
        grow((void **)&w->value, &w->value_size, need, sizeof(double)) ||
        grow((void **)&w->point, &w->point_size, w->points + 1, sizeof(Point)))
        return -1;
    int32_t *column = w->column + w->entries;
    double *value = w->value + w->entries;
    int count = 0;
    for (int i = 0; i < b->k; i++) {
        if (b->value[i] <= b->value_error[i])
            continue;
        int at = count++;
        for (; at > 0 && column[at - 1] > b->columns[i]; at--) {
            column[at] = column[at - 1];
            value[at] = value[at - 1];
        }
        column[at] = b->columns[i];
        value[at] = b->value[i];
    }
    Point *point = w->point + w->points++;
    memset(point, 0, sizeof *point);
    point->start = w->entries;
    point->count = count;
    point->shared = b->shared != 0;
    point->degenerate = b->zero != 0;
    w->different += !point->shared;
    w->entries += (size_t)count;
    return 0;
}

/* Find every basis, and the vertex of each, from the one that is found: one of the codes of
 * `_pivot.h`. `pause` is called from time to time; the walk stops if it returns something else than
 * 0. */
int pivot_walk(Walk *w, int (*pause)(void *), void *argument)
{
    note(w->slot, w->mask, record_hash(&w->problem, w->arena));
    for (size_t current = 0; current < w->count; current++) {
        if (w->count > w->most_bases || w->different > w->most_points)
            return LIMIT;
        if (current % BETWEEN_PAUSES == BETWEEN_PAUSES - 1 && pause(argument))
            return STOPPED;
        pivot_basis_load(&w->basis, w->arena + w->start[current]);
        if (pivot_basis_solve(&w->basis, &w->problem)) {
            /* the walk goes on, to count what it can, but its end is FAILED: nothing is proven */
            w->failures++;
            continue;
        }
        if (store(w) || expand(w, w->start[current]))
            return NO_MEMORY;
    }
    return w->failures ? FAILED : DONE;
}

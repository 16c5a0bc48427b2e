/* The walk: breadth first over all bases, each found once by a hash of its set of elements. */

#include "_pivot.h"

/* Bases between two looks at pending signals: some milliseconds. */
static const size_t BETWEEN_PAUSES = 4096;
/* Entries and bounds are at most 1 in size, those of the first column 2. */
static const double WIDEST = 4.0;

static int grow(void **array, size_t *size, size_t need, size_t item)
{
    if (need <= *size)
        return 0;
    size_t larger = need + *size / 2 + 64;
    void *moved = realloc(*array, larger * item);
    if (!moved)
        return -1;
    *array = moved;
    *size = larger;
    return 0;
}

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

static void basis_hash(const Walk *w, const int32_t *record, uint64_t *place, uint64_t *tag)
{
    const Problem *p = &w->problem;
    int k = record[0];
    *place = *tag = 0;
    for (int i = 1; i <= k; i++) {
        *place ^= p->place[record[i]];
        *tag ^= p->tag[record[i]];
    }
    for (int i = k + 1; i < 2 * k; i++) {
        *place ^= p->place[p->width + record[i]];
        *tag ^= p->tag[p->width + record[i]];
    }
}

/* True if the tag is new; then it is noted. */
static int note(uint64_t *slot, size_t mask, uint64_t place, uint64_t tag)
{
    tag += tag == 0;
    for (size_t i = place & mask;; i = (i + 1) & mask) {
        if (slot[i] == tag)
            return 0;
        if (slot[i] == 0) {
            slot[i] = tag;
            return 1;
        }
    }
}

static int rehash(Walk *w)
{
    size_t size = 2 * (w->mask + 1);
    uint64_t *slot = calloc(size, sizeof(uint64_t)), place, tag;
    if (!slot)
        return -1;
    for (size_t i = 0; i < w->count; i++) {
        basis_hash(w, w->arena + w->start[i], &place, &tag);
        note(slot, size - 1, place, tag);
    }
    free(w->slot);
    w->slot = slot;
    w->mask = size - 1;
    return 0;
}

/* The basis as it stands after a move: `column` (or the tight row r) comes, `code` goes. Returns the length. */
static int successor(const Basis *b, ptrdiff_t column, int r, int32_t code, int32_t *record)
{
    int k = b->k, out = 0;
    for (int i = 0; i < k; i++)
        if (i != code)
            record[++out] = b->columns[i];
    if (column >= 0)
        record[++out] = (int32_t)column;
    record[0] = out;
    for (int q = 0; q < k - 1; q++)
        if (q != r)
            record[++out] = b->rows[q];
    if (code >= k)
        record[++out] = code - k;
    return out + 1;
}

static int append(Walk *w, ptrdiff_t column, int r, int32_t code)
{
    if (grow((void **)&w->arena, &w->arena_size, w->arena_used + 2 * (size_t)w->basis.k + 4, sizeof(int32_t)) ||
        grow((void **)&w->start, &w->count_size, w->count + 1, sizeof(size_t)))
        return -1;
    w->start[w->count++] = w->arena_used;
    w->arena_used += (size_t)successor(&w->basis, column, r, code, w->arena + w->arena_used);
    return 0;
}

/* Undo the marks of the basis at hand and load another record. */
static void basis_load(Basis *b, const int32_t *record)
{
    for (int i = 0; i < b->k; i++)
        b->position[b->columns[i]] = -1;
    for (int r = 0; r < b->k - 1; r++)
        b->tight[b->rows[r] >> 1] = BETWEEN;
    b->k = record[0];
    for (int i = 0; i < b->k; i++) {
        b->columns[i] = record[1 + i];
        b->position[b->columns[i]] = i;
    }
    for (int r = 0; r < b->k - 1; r++) {
        b->rows[r] = record[1 + b->k + r];
        b->tight[b->rows[r] >> 1] = (unsigned char)(AT_LOWER + (b->rows[r] & 1));
    }
}

/* What leaves. Where several things reach their end within rounding of one step, that step is too coarse a
   measure (1 - 1e-15 against 1), but each basis behind it is not: take the first that is feasible. */
static int32_t decide(Walk *w, ptrdiff_t column, int r)
{
    Basis *b = &w->basis, *probe = &w->probe;
    int32_t code = pivot_ratio_exact(b, &w->problem, column, r);
    if (code < 0 || b->ties == 1)
        return code;
    for (int c = 0; c < b->ties; c++) {
        successor(b, column, r, b->code[c], w->record);
        basis_load(probe, w->record);
        if (pivot_basis_solve(probe, &w->problem) == 0 && probe->least_tilt > 0.0)
            return b->code[c];
    }
    return code;
}

/* Note the hash of the neighbour that move number `move` leads to; what leaves decides it. */
static void foresee(Walk *w, ptrdiff_t move, uint64_t place, uint64_t tag, int32_t code)
{
    const Problem *p = &w->problem;
    Basis *b = &w->basis;
    ptrdiff_t element = code < b->k ? b->columns[code] : p->width + (code - b->k);
    b->leave[move] = code;
    b->next_place[move] = place ^ p->place[element];
    b->next_tag[move] = tag ^ p->tag[element];
    PREFETCH(w->slot + (b->next_place[move] & w->mask));
}

static int expand(Walk *w, size_t record)
{
    const Problem *p = &w->problem;
    Basis *b = &w->basis;
    ptrdiff_t n = p->n;
    int k = b->k;
    uint64_t place, tag;
    basis_hash(w, w->arena + record, &place, &tag);
    double doubt;
    int fast = pivot_ratio_fast(b, p, &doubt) == 0;
    for (ptrdiff_t j = 0; j < n; j++) {
        b->leave[j] = -1;
        if (b->position[j] >= 0)
            continue;
        int32_t code = fast ? pivot_leaving(b, j, doubt) : -1;
        code = code < 0 ? decide(w, j, -1) : code;
        if (code < 0)
            w->failures++;
        else
            foresee(w, j, place ^ p->place[j], tag ^ p->tag[j], code);
    }
    for (int r = 0; r < k - 1; r++) {
        ptrdiff_t own = p->width + b->rows[r];
        int32_t code = fast ? pivot_leaving_row(b, p, r, doubt) : -1;
        code = code < 0 ? decide(w, -1, r) : code;
        b->leave[n + r] = -1;
        if (code < 0)
            w->failures++;
        else
            foresee(w, n + r, place ^ p->place[own], tag ^ p->tag[own], code);
    }
    for (ptrdiff_t move = 0; move < n + k - 1; move++) {
        if (b->leave[move] < 0 || !note(w->slot, w->mask, b->next_place[move], b->next_tag[move]))
            continue;
        if (append(w, move < n ? move : -1, move < n ? -1 : (int)(move - n), b->leave[move]))
            return -1;
        if (2 * w->count > w->mask && rehash(w))
            return -1;
    }
    return 0;
}

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
    w->different += !point->shared;
    point->degenerate = b->zero != 0;
    w->entries += (size_t)count;
    return 0;
}

/* A first basis: one more column, strictly inside every row's bounds, carries all weight; its weight is
   minimised until it leaves, or until duality shows that it cannot: weights sum to 1 and no slack of a row
   of size one exceeds WIDEST, so the rates, and their errors, bound what is left to gain. Returns DONE,
   EMPTY, FAILED or NO_MEMORY. */
static int find_start(Walk *w)
{
    const Problem *p = &w->problem;
    Basis *b = &w->basis;
    ptrdiff_t n = p->n, rounds = 1000 + 50 * (p->n + p->m);
    int32_t first[2] = {1, (int32_t)n};
    basis_load(b, first);
    while (rounds-- > 0) {
        if (pivot_basis_solve(b, p))
            return FAILED;
        int k = b->k, r = -1;
        const double *h = b->inverse + b->position[n] * k;
        ptrdiff_t column = -1;
        double best = 4.0 * NOISE * b->size, most = 0.0;
        double gain = b->value_error[b->position[n]] + NOISE * b->size * b->size;
        for (int q = 0; q < k - 1; q++)
            b->row[q] = p->a + (b->rows[q] >> 1) * p->width;
        pivot_combine(n, k - 1, h, b->row, h[k - 1], b->rate);
        for (ptrdiff_t j = 0; j < n; j++) {
            most = b->rate[j] > most ? b->rate[j] : most;
            if (b->position[j] < 0 && b->rate[j] > best) {
                best = b->rate[j];
                column = j;
            }
        }
        for (int q = 0; q < k - 1; q++) {
            double rate = b->rows[q] & 1 ? h[q] : -h[q];
            gain += rate > 0.0 ? WIDEST * rate : 0.0;
            if (rate > best) {
                best = rate;
                column = -1;
                r = q;
            }
        }
        if (b->value[b->position[n]] > most + gain)
            return EMPTY;
        if (column < 0 && r < 0)
            return FAILED;
        r = column >= 0 ? -1 : r;
        int32_t code = decide(w, column, r);
        if (code < 0)
            return FAILED;
        w->count = w->arena_used = 0;
        if (append(w, column, r, code))
            return NO_MEMORY;
        int gone = code < k && b->columns[code] == n;
        basis_load(b, w->arena);
        if (gone)
            return DONE;
    }
    return FAILED;
}

int pivot_walk(Walk *w, int (*pause)(void *), void *argument)
{
    uint64_t place, tag;
    if (pivot_basis_init(&w->basis, &w->problem) || pivot_basis_init(&w->probe, &w->problem))
        return NO_MEMORY;
    w->mask = 1023;
    w->slot = calloc(w->mask + 1, sizeof(uint64_t));
    w->record = malloc(sizeof(int32_t) * 2 * ((size_t)w->basis.capacity + 1));
    if (!w->slot || !w->record)
        return NO_MEMORY;
    int status = find_start(w);
    w->failures += status == FAILED;
    if (status != DONE)
        return status;
    basis_hash(w, w->arena, &place, &tag);
    note(w->slot, w->mask, place, tag);
    for (size_t current = 0; current < w->count; current++) {
        if (w->count > w->most_bases || w->different > w->most_points)
            return LIMIT;
        if (current % BETWEEN_PAUSES == BETWEEN_PAUSES - 1 && pause(argument))
            return STOPPED;
        basis_load(&w->basis, w->arena + w->start[current]);
        if (pivot_basis_solve(&w->basis, &w->problem)) {
            w->failures++;
            continue;
        }
        if (store(w) || expand(w, w->start[current]))
            return NO_MEMORY;
    }
    return w->failures ? FAILED : DONE;
}

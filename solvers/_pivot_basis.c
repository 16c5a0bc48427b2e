/* One basis of the walk: its inverse, its vertex, the activities of the other rows, and what
 * rounding leaves open.
 *
 * A basis comes as a record, the numbers k, T, R: 2, 0, 3, 5 means that the columns 0 and 3 are
 * positive and row 2 is at its upper bound (5 = 2 * 2 + 1). `pivot_basis_load` marks them, and
 * `pivot_basis_solve` computes what follows, in the letters of `_pivot.h`:
 *
 *     1. M = [A[R, T]; 1] and its right side [bounds of R; 1]               (`set_system`)
 *     2. H = M^-1, v_T = H [bounds; 1], and its slope in t, H [pushes; 0]   (`solve_system`)
 *     3. the error of v_T, after one step of refinement                     (`pivot_refine`)
 *     4. activity, slope and gain A[t, T] H of each row t that is not tight (`weigh_row`)
 *
 * Each basic quantity is compared with its error (`weigh`): within it the quantity is zero, and
 * the vertex degenerate; far below zero it contradicts the walk, and the basis counts as failed.
 * Arrays of all bases are one block of memory, laid out once.
 */

#include "_pivot.h"

/* A quantity this many times below its noise contradicts the walk: such a basis is counted as
 * failed. */
static const double CONTRADICTION = 64.0;
/* Bases with a slack below this may share their vertex with another basis; the others cannot,
 * because points within the merge tolerance of each other differ in every slack by far less. */
static const double SHARED = 1e-7;
/* The start needs one column more than the smaller side of the problem, and a basis one more
 * again. */
enum { SPARE_COLUMNS = 3 };
/* Low bits of a rate that are always free for codes: 6. */
static const uint64_t LEAST_CODE_MASK = 63;
/* Arrays of a block begin at multiples of this many bytes. */
static const size_t ALIGNMENT = 16;

/* The next `count` items of `size` bytes of a block; NULL while measuring. */
static void *take(char *block, size_t *used, size_t count, size_t size)
{
    void *out = block ? block + *used : NULL;
    *used += (count * size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    return out;
}

/* Lay the arrays out in the block, or only measure them if there is none yet; bytes in all. */
static size_t lay_out(Basis *b, const Problem *p, char *block)
{
    size_t n = (size_t)p->width;
    size_t m = (size_t)p->m;
    size_t c = (size_t)b->capacity;
    size_t candidates = c + m + 1;
    size_t moves = n + c;
    size_t used = 0;
    b->columns = take(block, &used, c, sizeof(int32_t));
    b->rows = take(block, &used, c, sizeof(int32_t));
    b->matrix = take(block, &used, c * c, sizeof(double));
    b->matrix_blur = take(block, &used, c * c, sizeof(double));
    b->work = take(block, &used, c * c, sizeof(double));
    b->inverse = take(block, &used, c * c, sizeof(double));
    b->value = take(block, &used, c, sizeof(double));
    b->slope = take(block, &used, c, sizeof(double));
    b->value_error = take(block, &used, c, sizeof(double));
    b->residual = take(block, &used, c, sizeof(double));
    b->activity = take(block, &used, m, sizeof(double));
    b->drift = take(block, &used, m, sizeof(double));
    b->activity_error = take(block, &used, m, sizeof(double));
    b->gain = take(block, &used, m * c, sizeof(double));
    b->tight = take(block, &used, m, sizeof(unsigned char));
    b->position = take(block, &used, n, sizeof(int32_t));
    b->direction = take(block, &used, c, sizeof(double));
    b->direction_error = take(block, &used, c, sizeof(double));
    b->quantity = take(block, &used, candidates, sizeof(double));
    b->change = take(block, &used, candidates, sizeof(double));
    b->tilt = take(block, &used, candidates, sizeof(double));
    b->error = take(block, &used, candidates, sizeof(double));
    b->code = take(block, &used, candidates, sizeof(int32_t));
    b->best = take(block, &used, n, sizeof(double));
    b->second = take(block, &used, n, sizeof(double));
    b->rate = take(block, &used, n, sizeof(double));
    b->rate_error = take(block, &used, n, sizeof(double));
    b->next_place = take(block, &used, moves, sizeof(uint64_t));
    b->next_tag = take(block, &used, moves, sizeof(uint64_t));
    b->leave = take(block, &used, moves, sizeof(int32_t));
    b->row = take(block, &used, c, sizeof(double *));
    b->row_blur = take(block, &used, c, sizeof(double *));
    return used;
}

/* Memory for the bases of a problem; -1 without it. */
int pivot_basis_init(Basis *b, const Problem *p)
{
    b->capacity = (int)(p->m < p->n ? p->m : p->n) + SPARE_COLUMNS;
    b->block = malloc(lay_out(b, p, NULL) + ALIGNMENT);
    if (!b->block)
        return -1;
    lay_out(b, p, b->block);
    b->code_mask = LEAST_CODE_MASK;
    while (b->code_mask < (uint64_t)(b->capacity + 2 * p->m))
        b->code_mask = 2 * b->code_mask + 1;
    for (ptrdiff_t j = 0; j < p->width; j++)
        b->position[j] = -1;
    memset(b->tight, BETWEEN, (size_t)p->m);
    return 0;
}

/* Release the one block of a basis. */
void pivot_basis_free(Basis *b)
{
    free(b->block);
}

/* Undo the marks of the basis at hand and load another record: k, then T, then R. */
void pivot_basis_load(Basis *b, const int32_t *record)
{
    for (int i = 0; i < b->k; i++)
        b->position[b->columns[i]] = -1;
    for (int r = 0; r < b->k - 1; r++)
        b->tight[row_of_code(b->rows[r])] = BETWEEN;
    b->k = record[0];
    for (int i = 0; i < b->k; i++) {
        b->columns[i] = record[1 + i];
        b->position[b->columns[i]] = i;
    }
    for (int r = 0; r < b->k - 1; r++) {
        b->rows[r] = record[1 + b->k + r];
        b->tight[row_of_code(b->rows[r])] = (unsigned char)(AT_LOWER + is_upper(b->rows[r]));
    }
}

/* ---------------------------------------------------------------- the k x k system */

/* Exchange two rows of a k x k matrix. */
static void swap_rows(double *a, int k, int i, int j)
{
    for (int c = 0; c < k; c++) {
        double saved = a[i * k + c];
        a[i * k + c] = a[j * k + c];
        a[j * k + c] = saved;
    }
}

/* x = a^-1 by Gauss and Jordan with partial pivoting, which destroys a; -1 if a is singular. */
static int invert(int k, double *restrict a, double *restrict x)
{
    memset(x, 0, sizeof(double) * (size_t)(k * k));
    for (int i = 0; i < k; i++)
        x[i * k + i] = 1.0;
    for (int c = 0; c < k; c++) {
        int pivot = c;
        for (int i = c + 1; i < k; i++)
            if (fabs(a[i * k + c]) > fabs(a[pivot * k + c]))
                pivot = i;
        double size = a[pivot * k + c];
        if (size == 0.0)
            return -1;
        if (pivot != c) {
            swap_rows(a, k, c, pivot);
            swap_rows(x, k, c, pivot);
        }
        double scale = 1.0 / size;
        for (int j = 0; j < k; j++) {
            a[c * k + j] *= scale;
            x[c * k + j] *= scale;
        }
        for (int i = 0; i < k; i++) {
            double f = a[i * k + c];
            if (i == c || f == 0.0)
                continue;
            for (int j = 0; j < k; j++) {
                a[i * k + j] -= f * a[c * k + j];
                x[i * k + j] -= f * x[c * k + j];
            }
        }
    }
    return 0;
}

/* One step of refinement of M x = right, and the error of x that the rounding of the data and of
 * the right side (`blur`) may cause: |M^-1| (|dM| |x| + blur). The error of each equation,
 * |dM| |x| + blur, stays in b->residual. */
void pivot_refine(const Basis *b, const double *right, const double *blur, double *x, double *error)
{
    int k = b->k;
    const double *h = b->inverse;
    const double *m = b->matrix;
    const double *e = b->matrix_blur;
    double *left = b->residual;
    /* the residual of the computed x, which H carries back: x += H (right - M x) */
    for (int r = 0; r < k; r++) {
        left[r] = right[r];
        for (int i = 0; i < k; i++)
            left[r] -= m[r * k + i] * x[i];
    }
    for (int i = 0; i < k; i++)
        for (int r = 0; r < k; r++)
            x[i] += h[i * k + r] * left[r];
    for (int r = 0; r < k; r++) {
        left[r] = blur[r];
        for (int i = 0; i < k; i++)
            left[r] += e[r * k + i] * fabs(x[i]);
    }
    for (int i = 0; i < k; i++) {
        error[i] = 0.0;
        for (int r = 0; r < k; r++)
            error[i] += fabs(h[i * k + r]) * left[r];
    }
}

/* Set up M = [A[R, T]; 1], the right side [bounds of R; 1], its slope in t, and their errors. */
static void set_system(Basis *b, const Problem *p, double *bound, double *push, double *blur)
{
    int k = b->k;
    for (int r = 0; r < k - 1; r++) {
        int row = row_of_code(b->rows[r]);
        int up = is_upper(b->rows[r]);
        const double *a = row_entries(p, row);
        const double *e = row_blur(p, row);
        for (int i = 0; i < k; i++) {
            b->matrix[r * k + i] = a[b->columns[i]];
            b->matrix_blur[r * k + i] = e[b->columns[i]];
        }
        bound[r] = up ? p->upper[row] : p->lower[row];
        /* outwards: an upper bound rises with t, a lower one falls */
        push[r] = up ? p->push_upper[row] : -p->push_lower[row];
        blur[r] = NOISE * fabs(bound[r]);
    }
    for (int i = 0; i < k; i++) {
        b->matrix[(k - 1) * k + i] = 1.0;
        b->matrix_blur[(k - 1) * k + i] = NOISE;
    }
    bound[k - 1] = 1.0;
    push[k - 1] = 0.0;
    blur[k - 1] = NOISE;
}

/* The inverse, v_T = M^-1 bound and its slope M^-1 push; -1 if M is singular. */
static int solve_system(Basis *b, const double *bound, const double *push, const double *blur)
{
    int k = b->k;
    const double *h = b->inverse;
    memcpy(b->work, b->matrix, sizeof(double) * (size_t)(k * k));
    if (invert(k, b->work, b->inverse))
        return -1;
    b->size = 1.0;
    for (int i = 0; i < k; i++) {
        double value = 0.0;
        double slope = 0.0;
        for (int r = 0; r < k; r++) {
            value += h[i * k + r] * bound[r];
            slope += h[i * k + r] * push[r];
            b->size += fabs(h[i * k + r]);
        }
        b->value[i] = value;
        b->slope[i] = slope;
    }
    pivot_refine(b, bound, blur, b->value, b->value_error);
    return 0;
}

/* ---------------------------------------------------------------- what follows from a basis */

/* Note one basic quantity: zero ones are degenerate; -1 for a clearly negative one, a
 * contradiction. */
static int weigh(Basis *b, double quantity, double tilt, double error)
{
    if (quantity < -CONTRADICTION * error)
        return -1;
    if (quantity <= error) {
        b->zero = 1;
        b->least_tilt = tilt < b->least_tilt ? tilt : b->least_tilt;
    } else {
        b->least = quantity < b->least ? quantity : b->least;
    }
    return 0;
}

/* The slack of a row to one of its bounds. */
Side pivot_side(const Basis *b, const Problem *p, ptrdiff_t row, int up)
{
    double limit = up ? p->upper[row] : p->lower[row];
    if (isinf(limit))
        return (Side){INFINITY, 0.0, 0.0};
    double error = b->activity_error[row] + NOISE * fabs(limit);
    if (up)
        return (Side){limit - b->activity[row], p->push_upper[row] - b->drift[row], error};
    return (Side){b->activity[row] - limit, b->drift[row] + p->push_lower[row], error};
}

/* Activity of row t, which is not tight, its slope, its error, and its gain A[t, T] M^-1; -1 on a
 * contradiction. b->residual holds the errors of the equations. */
static int weigh_row(Basis *b, const Problem *p, ptrdiff_t t)
{
    int k = b->k;
    const double *a = row_entries(p, t);
    const double *e = row_blur(p, t);
    const double *h = b->inverse;
    double *gain = b->gain + t * b->capacity;
    double activity = 0.0;
    double drift = 0.0;
    double error = 0.0;
    for (int r = 0; r < k; r++)
        gain[r] = 0.0;
    for (int i = 0; i < k; i++) {
        double entry = a[b->columns[i]];
        activity += entry * b->value[i];
        drift += entry * b->slope[i];
        error += e[b->columns[i]] * fabs(b->value[i]);
        for (int r = 0; r < k; r++)
            gain[r] += entry * h[i * k + r];
    }
    for (int r = 0; r < k; r++)
        error += fabs(gain[r]) * b->residual[r];
    b->activity[t] = activity;
    b->drift[t] = drift;
    b->activity_error[t] = error;
    Side low = pivot_side(b, p, t, 0);
    if (weigh(b, low.quantity, low.tilt, low.error))
        return -1;
    Side high = pivot_side(b, p, t, 1);
    return weigh(b, high.quantity, high.tilt, high.error);
}

/* Compute all quantities of the basis that columns and rows name; -1 if it is singular, or
 * contradicts the walk. */
int pivot_basis_solve(Basis *b, const Problem *p)
{
    double *bound = b->quantity; /* work space of the ratio tests is free here */
    double *push = b->change;
    double *blur = b->tilt;
    set_system(b, p, bound, push, blur);
    if (solve_system(b, bound, push, blur))
        return -1;
    b->least = INFINITY;
    b->least_tilt = INFINITY;
    b->zero = 0;
    b->shared = 0;
    /* Two bases that stand at either bound of a narrow row have vertices close to each other. */
    for (int r = 0; r < b->k - 1; r++) {
        int row = row_of_code(b->rows[r]);
        b->shared |= p->upper[row] - p->lower[row] < SHARED;
    }
    for (int i = 0; i < b->k; i++)
        if (weigh(b, b->value[i], b->slope[i], b->value_error[i]))
            return -1;
    for (ptrdiff_t t = 0; t < p->m; t++)
        if (!b->tight[t] && weigh_row(b, p, t))
            return -1;
    b->shared |= b->zero || b->least < SHARED;
    return 0;
}

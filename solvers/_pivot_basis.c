/* Vertices of {v >= 0, sum v = 1, lower <= A v <= upper} by walking from basis to basis.

   A basis is a support T of k columns and k - 1 tight rows R, each at one of its bounds, for which the
   k x k matrix M = [A[R, T]; 1] is regular; its vertex is v_T = M^-1 [bounds of R; 1]. With H = M^-1
   every neighbour costs one ratio test: a column that enters, or a tight row that leaves its bound,
   changes the k entries of v_T and the slacks of the other rows linearly.

   Degenerate vertices. Bound i is pushed outwards by t * pi_i, with fixed irrational-looking pi_i in
   [1, 2) and an infinitely small t > 0 that is carried symbolically: every basic quantity is a pair
   (value, slope in t), compared lexicographically. The pushed polytope has an interior if the set is not
   empty, and is simple, so its graph is connected, every basis has exactly n - 1 neighbours, and each
   vertex of the set itself is the limit of at least one feasible basis.

   What counts as zero. Inputs are doubles, so a quantity that a change of each entry and bound by a few units
   in the last place of the terms it was computed from (`magnitude`) could turn into zero is taken as zero:
   x = M^-1 y may err by |M^-1| (|dM| |x| + |dy|). Everything above that is decided as computed. A fast vectorised pass decides where the gap is clear
   for any error that the size of M^-1 permits; what is not clear is decided one by one, by the pairs. */

#include "_pivot.h"

/* A quantity this many times below its noise contradicts the walk: such a basis is counted as failed. */
static const double CONTRADICTION = 64.0;
/* Bases with a slack below this may share their vertex with another basis; the others cannot, because
   points within the merge tolerance of each other differ in every slack by far less. */
static const double SHARED = 1e-7;
/* ---------------------------------------------------------------- the problem */

static uint64_t mix(uint64_t x) /* splitmix64 */
{
    x += 0x9E3779B97F4A7C15u;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
}

double pivot_unit(uint64_t seed) { return (double)(mix(seed) >> 11) * 0x1p-53; }

void pivot_problem_free(Problem *p)
{
    free(p->a);
    free(p->place);
}

int pivot_problem_init(Problem *p, ptrdiff_t m, ptrdiff_t n, const double *rows, const double *magnitude,
                       const double *lower, const double *upper)
{
    ptrdiff_t width = n + 1, kept = 0, elements = width + 2 * m;
    double *block = malloc(sizeof(double) * (size_t)(2 * m * width + 4 * m + 1));
    uint64_t *hash = malloc(sizeof(uint64_t) * (size_t)(2 * elements));
    p->a = block;
    p->place = hash;
    if (!block || !hash)
        return -1;
    p->blur = block + m * width;
    p->lower = p->blur + m * width;
    p->upper = p->lower + m;
    p->push_lower = p->upper + m;
    p->push_upper = p->push_lower + m;
    p->tag = hash + elements;
    for (ptrdiff_t i = 0; i < m; i++) {
        const double *row = rows + i * n;
        double least = row[0], most = row[0], lo = lower[i], hi = upper[i];
        for (ptrdiff_t j = 1; j < n; j++) {
            least = row[j] < least ? row[j] : least;
            most = row[j] > most ? row[j] : most;
        }
        lo = lo <= least ? -INFINITY : lo; /* implied by the simplex */
        hi = hi >= most ? INFINITY : hi;
        if (isinf(lo) && isinf(hi))
            continue;
        double size = fmax(fabs(least), fabs(most));
        size = isinf(lo) ? size : fmax(size, fabs(lo));
        size = isinf(hi) ? size : fmax(size, fabs(hi));
        int exponent;
        frexp(size, &exponent); /* a power of two: scaling changes no digit */
        exponent = exponent < -1000 ? -1000 : exponent;
        double *out = p->a + kept * width, *blur = p->blur + kept * width, factor = ldexp(1.0, -exponent);
        for (ptrdiff_t j = 0; j < n; j++) {
            out[j] = factor * row[j];
            blur[j] = NOISE * factor * fabs(magnitude[i * n + j]);
        }
        lo = ldexp(lo, -exponent);
        hi = ldexp(hi, -exponent);
        out[n] = isinf(lo) ? hi - 1.0 : isinf(hi) ? lo + 1.0 : 0.5 * (lo + hi);
        blur[n] = NOISE * fabs(out[n]);
        p->lower[kept] = lo;
        p->upper[kept] = hi;
        p->push_lower[kept] = 1.0 + pivot_unit((uint64_t)(2 * i));
        p->push_upper[kept] = 1.0 + pivot_unit((uint64_t)(2 * i + 1));
        kept++;
    }
    p->m = kept;
    p->n = n;
    p->width = width;
    for (ptrdiff_t i = 0; i < elements; i++) {
        p->place[i] = mix((uint64_t)i + (1ull << 40));
        p->tag[i] = mix((uint64_t)i + (1ull << 41));
    }
    return 0;
}

/* ---------------------------------------------------------------- one basis and what follows from it */

static void *take(char *block, size_t *used, size_t bytes)
{
    void *out = block ? block + *used : NULL;
    *used += (bytes + 15) / 16 * 16;
    return out;
}

/* Without a block: measures only. */
static size_t lay_out(Basis *b, const Problem *p, char *block)
{
    size_t n = (size_t)p->width, m = (size_t)p->m, c = (size_t)b->capacity, d = sizeof(double), used = 0;
    size_t candidates = c + m + 1, moves = n + c, word = sizeof(int32_t), hash = sizeof(uint64_t);
    b->columns = take(block, &used, c * word);
    b->rows = take(block, &used, c * word);
    b->matrix = take(block, &used, c * c * d);
    b->matrix_blur = take(block, &used, c * c * d);
    b->work = take(block, &used, c * c * d);
    b->inverse = take(block, &used, c * c * d);
    b->value = take(block, &used, c * d);
    b->slope = take(block, &used, c * d);
    b->value_error = take(block, &used, c * d);
    b->residual = take(block, &used, c * d);
    b->activity = take(block, &used, m * d);
    b->drift = take(block, &used, m * d);
    b->activity_error = take(block, &used, m * d);
    b->gain = take(block, &used, m * c * d);
    b->tight = take(block, &used, m);
    b->position = take(block, &used, n * word);
    b->direction = take(block, &used, c * d);
    b->direction_error = take(block, &used, c * d);
    b->quantity = take(block, &used, candidates * d);
    b->change = take(block, &used, candidates * d);
    b->tilt = take(block, &used, candidates * d);
    b->error = take(block, &used, candidates * d);
    b->code = take(block, &used, candidates * word);
    b->best = take(block, &used, n * d);
    b->second = take(block, &used, n * d);
    b->rate = take(block, &used, n * d);
    b->rate_error = take(block, &used, n * d);
    b->next_place = take(block, &used, moves * hash);
    b->next_tag = take(block, &used, moves * hash);
    b->leave = take(block, &used, moves * word);
    b->row = take(block, &used, c * sizeof(double *));
    b->row_blur = take(block, &used, c * sizeof(double *));
    return used;
}

int pivot_basis_init(Basis *b, const Problem *p)
{
    b->capacity = (int)(p->m < p->n ? p->m : p->n) + 3; /* the start needs one column more */
    b->block = malloc(lay_out(b, p, NULL) + 16);
    if (!b->block)
        return -1;
    lay_out(b, p, b->block);
    b->code_mask = 63;
    while (b->code_mask < (uint64_t)(b->capacity + 2 * p->m))
        b->code_mask = 2 * b->code_mask + 1;
    for (ptrdiff_t j = 0; j < p->width; j++)
        b->position[j] = -1;
    memset(b->tight, BETWEEN, (size_t)p->m);
    return 0;
}

void pivot_basis_free(Basis *b) { free(b->block); }

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
        if (pivot != c)
            for (int j = 0; j < k; j++) {
                double t = a[c * k + j];
                a[c * k + j] = a[pivot * k + j];
                a[pivot * k + j] = t;
                t = x[c * k + j];
                x[c * k + j] = x[pivot * k + j];
                x[pivot * k + j] = t;
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

/* Note one basic quantity; zero ones are degenerate, clearly negative ones a contradiction. */
static int weigh(Basis *b, double quantity, double tilt, double error)
{
    if (quantity < -CONTRADICTION * error)
        return -1;
    if (quantity <= error) {
        b->zero = 1;
        b->least_tilt = tilt < b->least_tilt ? tilt : b->least_tilt;
    } else
        b->least = quantity < b->least ? quantity : b->least;
    return 0;
}

void pivot_refine(const Basis *b, const double *right, const double *blur, double *x, double *error)
{
    int k = b->k;
    const double *h = b->inverse, *m = b->matrix, *e = b->matrix_blur;
    double *left = b->residual;
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

int pivot_basis_solve(Basis *b, const Problem *p)
{
    int k = b->k;
    double *h = b->inverse, *matrix = b->matrix, *bound = b->quantity, *push = b->change, *blur = b->tilt;
    for (int r = 0; r < k - 1; r++) {
        int row = b->rows[r] >> 1, up = b->rows[r] & 1;
        const double *a = p->a + row * p->width, *e = p->blur + row * p->width;
        for (int i = 0; i < k; i++) {
            matrix[r * k + i] = a[b->columns[i]];
            b->matrix_blur[r * k + i] = e[b->columns[i]];
        }
        bound[r] = up ? p->upper[row] : p->lower[row];
        push[r] = up ? p->push_upper[row] : -p->push_lower[row];
        blur[r] = NOISE * fabs(bound[r]);
    }
    for (int i = 0; i < k; i++) {
        matrix[(k - 1) * k + i] = 1.0;
        b->matrix_blur[(k - 1) * k + i] = NOISE;
    }
    bound[k - 1] = 1.0;
    push[k - 1] = 0.0;
    blur[k - 1] = NOISE;
    memcpy(b->work, matrix, sizeof(double) * (size_t)(k * k));
    if (invert(k, b->work, h))
        return -1;
    b->size = 1.0;
    for (int i = 0; i < k; i++) {
        double value = 0.0, slope = 0.0;
        for (int r = 0; r < k; r++) {
            value += h[i * k + r] * bound[r];
            slope += h[i * k + r] * push[r];
            b->size += fabs(h[i * k + r]);
        }
        b->value[i] = value;
        b->slope[i] = slope;
    }
    pivot_refine(b, bound, blur, b->value, b->value_error);
    b->least = b->least_tilt = INFINITY;
    b->zero = b->shared = 0;
    for (int r = 0; r < k - 1; r++) /* both bounds of a row may be one */
        b->shared |= p->upper[b->rows[r] >> 1] - p->lower[b->rows[r] >> 1] < SHARED;
    for (int i = 0; i < k; i++)
        if (weigh(b, b->value[i], b->slope[i], b->value_error[i]))
            return -1;
    for (ptrdiff_t t = 0; t < p->m; t++) {
        if (b->tight[t])
            continue;
        const double *a = p->a + t * p->width, *e = p->blur + t * p->width;
        double *gain = b->gain + t * b->capacity, activity = 0.0, drift = 0.0, error = 0.0;
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
        Side low = pivot_side(b, p, t, 0), high = pivot_side(b, p, t, 1);
        if (weigh(b, low.quantity, low.tilt, low.error) || weigh(b, high.quantity, high.tilt, high.error))
            return -1;
    }
    b->shared |= b->zero || b->least < SHARED;
    return 0;
}

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

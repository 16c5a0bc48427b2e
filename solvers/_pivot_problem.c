/* The set whose vertices are enumerated, {v >= 0, sum v = 1, lower <= A v <= upper}: its rows
 * scaled to size one, and the fixed pushes of its bounds (`_pivot.h`).
 *
 * `pivot_problem_init` goes through the rows (`add_row`): (1) a bound that the simplex implies
 * becomes infinite, since A v is a mean of the entries; a row without bounds is left out; (2)
 * entries and bounds are multiplied by a power of two, which changes no digit; (3) each bound has
 * a push in [1, 2), from its number alone, so that results can be repeated. For example, the row
 * (3, 5, 4) with bounds 1 and 4 loses the lower one and becomes (0.375, 0.625, 0.5) <= 0.5.
 *
 * Column n, beyond the others, is that of the start (`_pivot_start.c`): strictly inside the bounds
 * of every row. Each element, a column or a bound, also has two random words, whose exclusive or
 * names a basis (`_pivot_walk.c`).
 */

#include "_pivot.h"

/* Rows of subnormal numbers are scaled as if they were larger: 2^1000 is still a double. */
#define LEAST_EXPONENT (-1000)
/* Seeds of the two hash words of an element, far from those of the pushes. */
#define PLACE_SEED (1ull << 40)
#define TAG_SEED (1ull << 41)

/* splitmix64 (Steele, Lea and Flood 2014): every bit of the result depends on every bit of x. */
static uint64_t mix(uint64_t x)
{
    x += 0x9E3779B97F4A7C15u;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
}

/* A fixed number in [0, 1) for every seed. */
double pivot_unit(uint64_t seed)
{
    return (double)(mix(seed) >> 11) * 0x1p-53;
}

/* Release the two blocks of a problem. */
void pivot_problem_free(Problem *p)
{
    free(p->a);
    free(p->place);
}

/* Memory for m rows, informative or not; -1 without it (pivot_problem_free frees what there is). */
static int allocate(Problem *p, ptrdiff_t m, ptrdiff_t n)
{
    ptrdiff_t width = n + 1;
    ptrdiff_t elements = width + 2 * m;
    p->n = n;
    p->width = width;
    p->a = malloc(sizeof(double) * (size_t)(2 * m * width + 4 * m + 1));
    p->place = malloc(sizeof(uint64_t) * (size_t)(2 * elements));
    if (!p->a || !p->place)
        return -1;
    p->blur = p->a + m * width;
    p->lower = p->blur + m * width;
    p->upper = p->lower + m;
    p->push_lower = p->upper + m;
    p->push_upper = p->push_lower + m;
    p->tag = p->place + elements;
    for (ptrdiff_t i = 0; i < elements; i++) {
        p->place[i] = mix((uint64_t)i + PLACE_SEED);
        p->tag[i] = mix((uint64_t)i + TAG_SEED);
    }
    return 0;
}

/* The power of two that scales a row of this size to one. */
static int scale_exponent(double size)
{
    int exponent;
    frexp(size, &exponent);
    return exponent < LEAST_EXPONENT ? LEAST_EXPONENT : exponent;
}

/* An activity strictly between the bounds, or on the inner side of the only one. */
static double inner_activity(double lower, double upper)
{
    if (isinf(lower))
        return upper - 1.0;
    if (isinf(upper))
        return lower + 1.0;
    return 0.5 * (lower + upper);
}

/* Append row i, scaled by a power of two, which changes no digit, unless the simplex implies it. */
static void add_row(Problem *p, ptrdiff_t i, const double *row, const double *magnitude,
                    double lower, double upper)
{
    double least = row[0];
    double most = row[0];
    for (ptrdiff_t j = 1; j < p->n; j++) {
        least = row[j] < least ? row[j] : least;
        most = row[j] > most ? row[j] : most;
    }
    if (lower <= least) /* a mean of the entries is never below the least one */
        lower = -INFINITY;
    if (upper >= most)
        upper = INFINITY;
    if (isinf(lower) && isinf(upper))
        return;
    double size = fmax(fabs(least), fabs(most));
    if (!isinf(lower))
        size = fmax(size, fabs(lower));
    if (!isinf(upper))
        size = fmax(size, fabs(upper));
    int exponent = scale_exponent(size);
    double factor = ldexp(1.0, -exponent);
    double *entries = p->a + p->m * p->width;
    double *blur = p->blur + p->m * p->width;
    for (ptrdiff_t j = 0; j < p->n; j++) {
        entries[j] = factor * row[j];
        blur[j] = NOISE * factor * fabs(magnitude[j]);
    }
    lower = ldexp(lower, -exponent);
    upper = ldexp(upper, -exponent);
    entries[p->n] = inner_activity(lower, upper);
    blur[p->n] = NOISE * fabs(entries[p->n]);
    p->lower[p->m] = lower;
    p->upper[p->m] = upper;
    p->push_lower[p->m] = 1.0 + pivot_unit((uint64_t)(2 * i));
    p->push_upper[p->m] = 1.0 + pivot_unit((uint64_t)(2 * i + 1));
    p->m++;
}

/* Set up the problem of m rows (m x n, C order), `magnitude` the size of the terms of which
 * each entry is a sum; -1 without memory. */
int pivot_problem_init(Problem *p, ptrdiff_t m, ptrdiff_t n, const double *rows,
                       const double *magnitude, const double *lower, const double *upper)
{
    if (allocate(p, m, n))
        return -1;
    p->m = 0;
    for (ptrdiff_t i = 0; i < m; i++)
        add_row(p, i, rows + i * n, magnitude + i * n, lower[i], upper[i]);
    return 0;
}

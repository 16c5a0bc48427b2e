/* Ratio tests: what leaves the basis when something enters. */

#include "_pivot.h"

/* In the fast pass: the rate of a zero quantity with slope one, the least of such rates (others stay far
   below), the rate of an unclear column, and how far two rates of zero quantities must be apart. */
static const double AT_ONCE = 1e100, PRACTICALLY_AT_ONCE = 1e50, UNCLEAR = 1e200, CLEAR_GAP = 0.01;
/* Beyond this relative error of its rates the fast pass would settle too few columns. */
static const double LARGEST_DOUBT = 0.1;
/* Leaves room for what the fast pass itself rounds. */
static const double SURELY = 0.75;
/* Changes this many times above their noise have a relative error well below CLEAR_GAP. */
static const double CLEAR_CHANGE = 1e3;

static void candidate(Basis *b, int *count, Side side, double change, double error, int32_t code)
{
    if (change >= -error || isinf(side.quantity)) /* does not shrink for certain, or never ends */
        return;
    double quantity = side.quantity <= side.error ? 0.0 : side.quantity, step = quantity / -change;
    double doubt = (side.error + step * error) / -change;
    b->quantity[*count] = step;
    b->error[*count] = doubt;
    b->tilt[*count] = side.tilt / -change;
    b->code[(*count)++] = code;
}

int32_t pivot_ratio_exact(Basis *b, const Problem *p, ptrdiff_t column, int r)
{
    int k = b->k, count = 0;
    double *h = b->inverse, *direction = b->direction, *right = b->change, *blur = b->tilt;
    int32_t own = r >= 0 ? b->rows[r] : -1;
    for (int q = 0; q < k; q++) { /* M direction = right */
        ptrdiff_t at = q < k - 1 ? (b->rows[q] >> 1) * p->width + column : 0;
        right[q] = column < 0 ? 0.0 : q < k - 1 ? -p->a[at] : -1.0;
        blur[q] = column < 0 || q == k - 1 ? 0.0 : p->blur[at];
    }
    if (r >= 0)
        right[r] = own & 1 ? -1.0 : 1.0;
    for (int i = 0; i < k; i++) {
        direction[i] = 0.0;
        for (int q = 0; q < k; q++)
            direction[i] += h[i * k + q] * right[q];
    }
    pivot_refine(b, right, blur, direction, b->direction_error);
    for (int i = 0; i < k; i++) {
        Side side = {b->value[i], b->slope[i], b->value_error[i]};
        candidate(b, &count, side, direction[i], b->direction_error[i], i);
    }
    for (ptrdiff_t t = 0; t < p->m; t++) {
        if (b->tight[t])
            continue;
        const double *gain = b->gain + t * b->capacity, *a = p->a + t * p->width, *e = p->blur + t * p->width;
        double change = column < 0 ? 0.0 : a[column], error = column < 0 ? 0.0 : e[column];
        for (int i = 0; i < k; i++) {
            change += a[b->columns[i]] * direction[i];
            error += e[b->columns[i]] * fabs(direction[i]);
        }
        for (int q = 0; q < k; q++)
            error += fabs(gain[q]) * b->residual[q];
        int up = change > 0.0;
        candidate(b, &count, pivot_side(b, p, t, up), -fabs(change), error, (int32_t)(k + 2 * t + up));
    }
    if (own >= 0) {
        int row = own >> 1;
        double size = NOISE * (fabs(p->upper[row]) + fabs(p->lower[row]));
        Side side = {p->upper[row] - p->lower[row], p->push_lower[row] + p->push_upper[row], size};
        candidate(b, &count, side, -1.0, 0.0, k + (own ^ 1));
    }
    double reach = INFINITY, step = 0.0;
    int ties = 0;
    for (int c = 0; c < count; c++) /* the longest step that no quantity forbids for certain */
        reach = b->quantity[c] + b->error[c] < reach ? b->quantity[c] + b->error[c] : reach;
    for (int c = 0; c < count; c++) { /* of those that tie, the one that the push lets through least first */
        if (b->quantity[c] - b->error[c] > reach)
            continue;
        double tilt = b->tilt[c];
        int32_t code = b->code[c];
        int at = ties++;
        step = b->quantity[c] > step ? b->quantity[c] : step;
        for (; at > 0 && b->tilt[at - 1] > tilt; at--) {
            b->tilt[at] = b->tilt[at - 1];
            b->code[at] = b->code[at - 1];
        }
        b->tilt[at] = tilt;
        b->code[at] = code;
    }
    b->ties = step > 0.0 ? ties : 1;
    return ties ? b->code[0] : -1;
}

#define COMBINE(SUM)                                                                                        \
    for (ptrdiff_t j = 0; j < n; j++)                                                                      \
        out[j] = last + (SUM);                                                                              \
    break

void pivot_combine(ptrdiff_t n, int count, const double *c, const double *const *row, double last,
                   double *restrict out)
{
    switch (count) {
    case 0: COMBINE(0.0);
    case 1: COMBINE(c[0] * row[0][j]);
    case 2: COMBINE(c[0] * row[0][j] + c[1] * row[1][j]);
    case 3: COMBINE(c[0] * row[0][j] + c[1] * row[1][j] + c[2] * row[2][j]);
    case 4: COMBINE(c[0] * row[0][j] + c[1] * row[1][j] + c[2] * row[2][j] + c[3] * row[3][j]);
    default:
        for (ptrdiff_t j = 0; j < n; j++)
            out[j] = last + c[0] * row[0][j] + c[1] * row[1][j] + c[2] * row[2][j] + c[3] * row[3][j];
        for (int q = 4; q < count; q++)
            for (ptrdiff_t j = 0; j < n; j++)
                out[j] += c[q] * row[q][j];
    }
}

/* Keep, column by column, the largest and second largest rate (the reciprocal of a step). The lowest bits
   of a rate give way to the code of what leaves, which keeps this loop free of branches. */
static void compete(ptrdiff_t n, const double *restrict rate, double scale, uint64_t code, uint64_t code_mask,
                    double *restrict best, double *restrict second)
{
    for (ptrdiff_t j = 0; j < n; j++) {
        union { double number; uint64_t bits; } x = {scale * rate[j]};
        x.bits = (x.bits & ~code_mask) | code;
        double top = best[j], low = x.number < top ? x.number : top;
        second[j] = low > second[j] ? low : second[j];
        best[j] = x.number > top ? x.number : top;
    }
}

/* The same for a quantity that is zero: it stops every column that shrinks it, the push decides among them.
   A change that may or may not be zero makes the column unclear. */
static void compete_zero(ptrdiff_t n, const double *restrict rate, const double *restrict zero, double sign,
                         double scale, double large, uint64_t code, uint64_t code_mask, double *restrict best,
                         double *restrict second)
{
    for (ptrdiff_t j = 0; j < n; j++) {
        double speed = sign * rate[j], unclear = speed > zero[j] ? UNCLEAR : 0.0;
        union { double number; uint64_t bits; } x = {speed > large ? scale * speed : unclear};
        x.bits = (x.bits & ~code_mask) | code;
        double top = best[j], low = x.number < top ? x.number : top;
        second[j] = low > second[j] ? low : second[j];
        best[j] = x.number > top ? x.number : top;
    }
}

/* One side of a row, or one entry of T, against all columns. Its change is the sum of `factor` times the
   rows at hand; below SURELY times the error of that sum alone it is zero for pivot_ratio_exact, too. */
static void stop(Basis *b, ptrdiff_t n, double sign, Side side, int count, const double *factor, double last,
                 double large, int code)
{
    if (side.quantity > side.error) {
        compete(n, b->rate, sign / side.quantity, (uint64_t)code, b->code_mask, b->best, b->second);
        return;
    }
    for (int q = 0; q < count; q++)
        b->direction_error[q] = SURELY * fabs(factor[q]);
    pivot_combine(n, count, b->direction_error, b->row_blur, SURELY * NOISE * fabs(last), b->rate_error);
    compete_zero(n, b->rate, b->rate_error, sign, AT_ONCE / side.tilt, large, (uint64_t)code, b->code_mask,
                 b->best, b->second);
}

int pivot_ratio_fast(Basis *b, const Problem *p, double *doubt)
{
    int k = b->k;
    ptrdiff_t n = p->n;
    double *h = b->inverse, *factor = b->direction;
    /* Changes err by at most `noise`; rates by (1 + rate) times that over the least quantity, and by what
       their code overwrites. */
    double noise = NOISE * b->size * b->size, large = CLEAR_CHANGE * noise;
    *doubt = 2.0 * noise / b->least + (double)b->code_mask * DBL_EPSILON;
    if (*doubt > LARGEST_DOUBT || b->least_tilt < CLEAR_CHANGE * NOISE * b->size)
        return -1;
    for (ptrdiff_t j = 0; j < n; j++)
        b->best[j] = b->second[j] = 0.0;
    for (int q = 0; q < k - 1; q++) {
        b->row[q] = p->a + (b->rows[q] >> 1) * p->width;
        b->row_blur[q] = p->blur + (b->rows[q] >> 1) * p->width;
    }
    for (int i = 0; i < k; i++) {
        Side side = {b->value[i], b->slope[i], b->value_error[i]};
        double last = h[i * k + k - 1];
        pivot_combine(n, k - 1, h + i * k, b->row, last, b->rate);
        stop(b, n, 1.0, side, k - 1, h + i * k, last, large, i);
    }
    for (ptrdiff_t t = 0; t < p->m; t++) {
        if (b->tight[t])
            continue;
        const double *gain = b->gain + t * b->capacity;
        Side low = pivot_side(b, p, t, 0), high = pivot_side(b, p, t, 1);
        int code = (int)(k + 2 * t);
        for (int q = 0; q < k - 1; q++)
            factor[q] = -gain[q];
        factor[k - 1] = 1.0;
        b->row[k - 1] = p->a + t * p->width;
        b->row_blur[k - 1] = p->blur + t * p->width;
        pivot_combine(n, k, factor, b->row, -gain[k - 1], b->rate);
        if (!isinf(low.quantity))
            stop(b, n, -1.0, low, k, factor, gain[k - 1], large, code);
        if (!isinf(high.quantity))
            stop(b, n, 1.0, high, k, factor, gain[k - 1], large, code + 1);
    }
    return 0;
}

int32_t pivot_leaving(const Basis *b, ptrdiff_t column, double doubt)
{
    union { double number; uint64_t bits; } best = {b->best[column]};
    double top = best.number, gap = top - b->second[column];
    int at_once = top > PRACTICALLY_AT_ONCE;
    int clear = at_once ? gap > CLEAR_GAP * top && top < 0.5 * UNCLEAR : gap > (1.0 + top) * doubt;
    return clear ? (int32_t)(best.bits & b->code_mask) : -1;
}

int32_t pivot_leaving_row(const Basis *b, const Problem *p, int r, double doubt)
{
    int k = b->k, own = b->rows[r];
    double sign = own & 1 ? -1.0 : 1.0, best = 1.0 / (p->upper[own >> 1] - p->lower[own >> 1]), second = 0.0;
    int32_t code = k + (own ^ 1);
    if (b->zero)
        return -1;
    for (ptrdiff_t c = 0; c < k + 2 * p->m; c++) {
        ptrdiff_t t = (c - k) / 2;
        double rate;
        if (c < k)
            rate = -sign * b->inverse[c * k + r] / b->value[c];
        else if (b->tight[t])
            continue;
        else if ((c - k) % 2)
            rate = sign * b->gain[t * b->capacity + r] / (p->upper[t] - b->activity[t]);
        else
            rate = -sign * b->gain[t * b->capacity + r] / (b->activity[t] - p->lower[t]);
        if (rate > best) {
            second = best;
            best = rate;
            code = (int32_t)c;
        } else
            second = rate > second ? rate : second;
    }
    return best - second > (1.0 + best) * doubt ? code : -1;
}

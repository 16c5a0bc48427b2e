/* What leaves the basis when a column enters, for all columns in one vectorised pass. Only columns
 * whose first and second candidate are clearly apart are decided here; the others are left to
 * `pivot_ratio_exact`.
 *
 * The set is {v >= 0, sum v = 1, lower <= A v <= upper}, and the letters are those of `_pivot.h`. A
 * basis is a support T of k columns and k - 1 tight rows R. These rows and sum v = 1 are k
 * equations for the k entries of the vertex, and H is the inverse of their matrix. The basic
 * quantities are these entries, and what every other row is away from its lower and from its
 * upper bound. For example, T = {0, 1} and the tight row v_0 - v_1 <= 0 have the vertex
 * (1/2, 1/2, 0). If column 2 enters with the value x, both entries shrink to 1/2 - x / 2.
 *
 * Let a column enter with the value x. Each basic quantity q > 0 changes linearly, to q - s x. The
 * first one at zero leaves the basis: the one of least step q / s, or of largest rate s / q. Rates
 * need no special case, for what does not shrink has none above zero. For example, quantities of
 * 0.2 and 0.5 that shrink at the speeds 0.1 and 0.5 have the rates 0.5 and 1: the second one
 * leaves.
 *
 * Steps. (1) `pivot_ratio_fast` goes from quantity to quantity (`stop_by_entry`, `stop_by_row`).
 * (2) A sum of rows gives the speeds of one quantity for all columns (`pivot_combine`). (3) Its
 * rates compete with the two largest so far, b->best and b->second (`compete`, or `compete_zero`).
 * (4) Afterwards `pivot_leaving` reads what leaves from b->best, if the gap to b->second exceeds
 * the possible error, and else returns -1. Moves of a tight row off its bound are few; they have a
 * loop of their own (`pivot_leaving_row`).
 *
 * Codes in rates. Positive doubles have the order of their bits. So the lowest bits of a rate give
 * way to the code of what leaves (`_pivot.h`), and the maximum of the rates carries the code along.
 * For example, with codes of six bits (`code_mask` is 63) the bits of the rate 1 end in 000101 if
 * code 5 sets it, row 1 at its lower bound where k = 3. The loops then have no branches, and a rate
 * errs by at most `code_mask` units in the last place.
 *
 * Zeros. At a degenerate vertex some quantities are zero, and stop at once every column that
 * shrinks them. Among them the push of `_pivot.h` decides: every bound is moved outwards by t times
 * a fixed number, with an infinitely small t, so a zero quantity is in truth t times its slope. Its
 * slope takes the place of q in the rate. Such rates are multiplied by AT_ONCE, which puts them
 * above all others.
 */

#include "_pivot.h"

/* The rate of a quantity that is zero, if its slope and its speed are one. */
static const double AT_ONCE = 1e100;
/* Rates of zero quantities lie above this, all others far below. */
static const double PRACTICALLY_AT_ONCE = 1e50;
/* The rate of a quantity that may or may not stop a column: above every other rate. */
static const double UNCLEAR = 1e200;
/* How far two rates of zero quantities must be apart, as a share of the larger one. */
static const double CLEAR_GAP = 0.01;
/* Beyond this relative error of its rates the fast pass would settle too few columns. */
static const double LARGEST_DOUBT = 0.1;
/* A change below this share of its error is zero for `pivot_ratio_exact`, too. The rest of the
 * error leaves room for what the fast pass itself rounds. */
static const double SURELY = 0.75;
/* Changes this many times above their noise have a relative error well below CLEAR_GAP. */
static const double CLEAR_CHANGE = 1e3;

/* A rate, and its bits. */
typedef union {
    double number;
    uint64_t bits;
} Rate;

/* out = last + sum over q of c[q] * row[q], column by column.
 *
 * Most bases have few rows. Up to four of them are written out, so that one vectorised pass reads
 * every row once and writes `out` once. */
void pivot_combine(ptrdiff_t n, int count, const double *c, const double *const *row, double last,
                   double *restrict out)
{
    switch (count) {
    case 0:
        for (ptrdiff_t j = 0; j < n; j++)
            out[j] = last + 0.0;
        return;
    case 1:
        for (ptrdiff_t j = 0; j < n; j++)
            out[j] = last + (c[0] * row[0][j]);
        return;
    case 2:
        for (ptrdiff_t j = 0; j < n; j++)
            out[j] = last + (c[0] * row[0][j] + c[1] * row[1][j]);
        return;
    case 3:
        for (ptrdiff_t j = 0; j < n; j++)
            out[j] = last + (c[0] * row[0][j] + c[1] * row[1][j] + c[2] * row[2][j]);
        return;
    case 4:
        for (ptrdiff_t j = 0; j < n; j++)
            out[j] =
                last + (c[0] * row[0][j] + c[1] * row[1][j] + c[2] * row[2][j] + c[3] * row[3][j]);
        return;
    default:
        for (ptrdiff_t j = 0; j < n; j++)
            out[j] =
                last + c[0] * row[0][j] + c[1] * row[1][j] + c[2] * row[2][j] + c[3] * row[3][j];
        for (int q = 4; q < count; q++)
            for (ptrdiff_t j = 0; j < n; j++)
                out[j] += c[q] * row[q][j];
    }
}

/* Let the rates scale * rate of one quantity compete, column by column, for the two largest. */
static void compete(ptrdiff_t n, const double *restrict rate, double scale, uint64_t code,
                    uint64_t code_mask, double *restrict best, double *restrict second)
{
    for (ptrdiff_t j = 0; j < n; j++) {
        Rate x = {scale * rate[j]};
        x.bits = (x.bits & ~code_mask) | code;
        /* the smaller one of the new rate and the best may still be the second */
        double top = best[j];
        double low = x.number < top ? x.number : top;
        second[j] = low > second[j] ? low : second[j];
        best[j] = x.number > top ? x.number : top;
    }
}

/* The same for a quantity that is zero: it stops every column that shrinks it, and the push decides
 * among them.
 *
 * A speed above `large` surely shrinks it, one of at most zero[j] surely does not. Anything between
 * makes the column unclear. */
static void compete_zero(ptrdiff_t n, const double *restrict rate, const double *restrict zero,
                         double sign, double scale, double large, uint64_t code, uint64_t code_mask,
                         double *restrict best, double *restrict second)
{
    for (ptrdiff_t j = 0; j < n; j++) {
        double speed = sign * rate[j];
        double unclear = speed > zero[j] ? UNCLEAR : 0.0;
        Rate x = {speed > large ? scale * speed : unclear};
        x.bits = (x.bits & ~code_mask) | code;
        double top = best[j];
        double low = x.number < top ? x.number : top;
        second[j] = low > second[j] ? low : second[j];
        best[j] = x.number > top ? x.number : top;
    }
}

/* A sum of rows: the change of one quantity for each unit of every column. */
typedef struct {
    int count;            /* rows in b->row and b->row_blur */
    const double *factor; /* of each row */
    double last;          /* constant term */
} Combination;

/* Let one quantity, a side of a row or an entry of T, compete for all columns.
 *
 * `sum` is the combination of rows that gave the changes in b->rate; `sign` is 1 where a positive
 * change shrinks the quantity. Of a quantity above its error every change counts. One that is zero
 * also needs the error of each change: the same sum of the errors of the rows. */
static void stop(Basis *b, ptrdiff_t n, double sign, Side side, const Combination *sum,
                 double large, int code)
{
    if (side.quantity > side.error) {
        compete(n, b->rate, sign / side.quantity, (uint64_t)code, b->code_mask, b->best, b->second);
        return;
    }
    for (int q = 0; q < sum->count; q++)
        b->direction_error[q] = SURELY * fabs(sum->factor[q]);
    double last = SURELY * NOISE * fabs(sum->last);
    pivot_combine(n, sum->count, b->direction_error, b->row_blur, last, b->rate_error);
    compete_zero(n, b->rate, b->rate_error, sign, AT_ONCE / side.tilt, large, (uint64_t)code,
                 b->code_mask, b->best, b->second);
}

/* Entry i of T: it shrinks by H[i, R] A[R, column] + H[i, last] for each unit of a column. */
static void stop_by_entry(Basis *b, const Problem *p, int i, double large)
{
    int k = b->k;
    const double *h = b->inverse + i * k;
    Side side = {b->value[i], b->slope[i], b->value_error[i]};
    Combination sum = {k - 1, h, h[k - 1]};
    pivot_combine(p->n, k - 1, h, b->row, sum.last, b->rate);
    stop(b, p->n, 1.0, side, &sum, large, i);
}

/* Both sides of row t, which is not tight. Its activity grows by A[t, column] - gain (A[R, column],
 * 1) for each unit of a column, where gain = A[t, T] H: what the column itself adds, less what the
 * entries of T give way. Growth takes it away from its lower bound and towards its upper one. */
static void stop_by_row(Basis *b, const Problem *p, ptrdiff_t t, double large)
{
    int k = b->k;
    const double *gain = b->gain + t * b->capacity;
    double *factor = b->direction;
    int code = (int)(k + 2 * t);
    Side low = pivot_side(b, p, t, 0);
    Side high = pivot_side(b, p, t, 1);
    for (int q = 0; q < k - 1; q++)
        factor[q] = -gain[q];
    factor[k - 1] = 1.0;
    b->row[k - 1] = row_entries(p, t);
    b->row_blur[k - 1] = row_blur(p, t);
    Combination sum = {k, factor, gain[k - 1]};
    pivot_combine(p->n, k, factor, b->row, -gain[k - 1], b->rate);
    if (!isinf(low.quantity))
        stop(b, p->n, -1.0, low, &sum, large, code);
    if (!isinf(high.quantity))
        stop(b, p->n, 1.0, high, &sum, large, code + 1);
}

/* The two largest rates of every column, into b->best and b->second; -1 if the basis is too
 * rough for that.
 *
 * Changes err by at most `noise`. So a rate errs by (1 + rate) times noise over the least quantity,
 * and by what its code overwrites: `*doubt` is the sum of both without the factor (1 + rate). */
int pivot_ratio_fast(Basis *b, const Problem *p, double *doubt)
{
    double noise = NOISE * b->size * b->size;
    double large = CLEAR_CHANGE * noise;
    *doubt = 2.0 * noise / b->least + (double)b->code_mask * DBL_EPSILON;
    if (*doubt > LARGEST_DOUBT || b->least_tilt < CLEAR_CHANGE * NOISE * b->size)
        return -1;
    for (ptrdiff_t j = 0; j < p->n; j++) {
        b->best[j] = 0.0;
        b->second[j] = 0.0;
    }
    /* every combination has the tight rows; `stop_by_row` puts its own row behind them */
    for (int q = 0; q < b->k - 1; q++) {
        b->row[q] = row_entries(p, row_of_code(b->rows[q]));
        b->row_blur[q] = row_blur(p, row_of_code(b->rows[q]));
    }
    for (int i = 0; i < b->k; i++)
        stop_by_entry(b, p, i, large);
    for (ptrdiff_t t = 0; t < p->m; t++)
        if (!b->tight[t])
            stop_by_row(b, p, t, large);
    return 0;
}

/* What leaves when a column enters, or -1 where only pivot_ratio_exact can tell.
 *
 * Among ordinary rates the gap must exceed the error of the larger one. Rates of zero quantities
 * all come from the slopes, so for them a share of the larger one decides. */
int32_t pivot_leaving(const Basis *b, ptrdiff_t column, double doubt)
{
    Rate best = {b->best[column]};
    double top = best.number;
    double gap = top - b->second[column];
    int clear = gap > (1.0 + top) * doubt;
    if (top > PRACTICALLY_AT_ONCE)
        clear = gap > CLEAR_GAP * top && top < 0.5 * UNCLEAR;
    return clear ? (int32_t)(best.bits & b->code_mask) : -1;
}

/* The rate at which quantity number `code` stops tight row r that leaves its bound (sign -1
 * from the upper one). The vertex moves along column r of H, and the activity of another row along
 * entry r of its gain. */
static double row_rate(const Basis *b, const Problem *p, int r, double sign, ptrdiff_t code)
{
    int k = b->k;
    if (code < k)
        return -sign * b->inverse[code * k + r] / b->value[code];
    ptrdiff_t t = (code - k) / 2;
    double gain = b->gain[t * b->capacity + r];
    if ((code - k) % 2)
        return sign * gain / (p->upper[t] - b->activity[t]);
    return -sign * gain / (b->activity[t] - p->lower[t]);
}

/* What leaves when tight row r leaves its bound, or -1 where only pivot_ratio_exact can tell.
 *
 * There are only k - 1 such moves, so their rates are compared one by one, without codes in them.
 * At a degenerate vertex nothing is decided here. */
int32_t pivot_leaving_row(const Basis *b, const Problem *p, int r, double doubt)
{
    int k = b->k;
    int tight = b->rows[r];
    int row = row_of_code(tight);
    double sign = is_upper(tight) ? -1.0 : 1.0;
    double best = 1.0 / (p->upper[row] - p->lower[row]); /* its other bound */
    double second = 0.0;
    int32_t code = k + (tight ^ 1);
    if (b->zero)
        return -1;
    for (ptrdiff_t c = 0; c < k + 2 * p->m; c++) {
        if (c >= k && b->tight[(c - k) / 2])
            continue;
        double rate = row_rate(b, p, r, sign, c);
        if (rate > best) {
            second = best;
            best = rate;
            code = (int32_t)c;
        } else {
            second = rate > second ? rate : second;
        }
    }
    return best - second > (1.0 + best) * doubt ? code : -1;
}

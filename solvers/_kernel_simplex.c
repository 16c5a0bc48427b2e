/* The problem, a bounded dual simplex for its linear programs, and the bound that rounding cannot break. */

#include "_kernel.h"

/* Primal infeasibility and reduced costs below these count as zero; they steer the simplex only. */
#define PRIMAL_TOL 2e-13
#define PIVOT_TOL 1e-9
/* A point that misses a row by more, relative to one plus the row, is computed once more. */
#define SHARP 4e-13
/* Changes of the basis, of one program or of several, after which it is inverted anew. */
#define REFACTOR 60
/* A basis next to a singular one, entered by a pivot below one part in so many or left by one above it, has an inverse of
 * few digits, which the ones after it would inherit. */
#define ROUGH 1e5

double objective(const Problem *p, const double *y, const double *v)
{
    double total = 0.0;
    for (int j = 0; j < p->n; j++)
        if (v[j] > 0.0) total += phi(v[j]) - y[j] * v[j];
    return total;
}

/* Bounds of what the rows sum over feasible points, for the rounding allowance. */
void weigh_rows(Problem *p)
{
    p->mass = 1.0;
    for (int j = p->n; j < p->N; j++) p->mass += p->root_u[j];
    for (int k = 0; k < p->M; k++) {
        double largest = 0.0, least = 0.0;
        for (int j = 0; j < p->N; j++) {
            double a = p->A[(size_t)k * (size_t)p->N + (size_t)j];
            if (fabs(a) > largest) largest = fabs(a);
            if (a < least) least = a;
        }
        p->row_weight[k] = largest * p->mass;
        /* without negative entries the sum is the value of the row, which its upper end limits */
        if (least >= 0.0 && p->out_hi[k] < p->row_weight[k])
            p->row_weight[k] = p->out_hi[k] > 0.0 ? p->out_hi[k] : 0.0;
    }
}

/* The next `count` doubles of a block. */
static double *carve(double **at, size_t count)
{
    double *start = *at;
    *at += count;
    return start;
}

int work_init(Work *w, const Problem *p)
{
    size_t N = (size_t)p->N, M = (size_t)p->M, T = N + M, n = (size_t)p->n;
    size_t doubles = 7 * T + 4 * M + M * M + 3 * n + N, ints = 2 * T + 3 * M;
    memset(w, 0, sizeof *w);
    double *at = w->memory = calloc(doubles * sizeof(double) + ints * sizeof(int) + M, 1);
    if (!at) return -1;
    w->L = carve(&at, T);
    w->U = carve(&at, T);
    w->c = carve(&at, T);
    w->x = carve(&at, T);
    w->d = carve(&at, T);
    w->alpha = carve(&at, T);
    w->ratio = carve(&at, T);
    w->xB = carve(&at, M);
    w->pi = carve(&at, M);
    w->work = carve(&at, M);
    w->col = carve(&at, M);
    w->inverse = carve(&at, M * M);
    w->l = carve(&at, n);
    w->u = carve(&at, n);
    w->v = carve(&at, N);
    w->gain = carve(&at, n);
    w->where = (int *)at;
    w->cand = w->where + T;
    w->basis = w->cand + T;
    w->row_of = w->basis + M;
    w->slot_of = w->row_of + M;
    w->keep = (char *)(w->slot_of + M);
    return 0;
}

void work_free(Work *w)
{
    free(w->memory);
    memset(w, 0, sizeof *w);
}

/* Rows of the linear program: the outer set for bounds, the inner one for columns. */
void set_rows(const Problem *p, Work *w, int inner)
{
    size_t bytes = sizeof(double) * (size_t)p->M;
    memcpy(w->L + p->N, inner ? p->in_lo : p->out_lo, bytes);
    memcpy(w->U + p->N, inner ? p->in_hi : p->out_hi, bytes);
    memset(w->c + p->N, 0, bytes);
}

void slack_basis(const Problem *p, Work *w)
{
    int M = p->M, N = p->N;
    for (int j = 0; j < N; j++) w->where[j] = -1;
    for (int i = 0; i < M; i++) {
        w->basis[i] = N + i;
        w->where[N + i] = i;
    }
    w->active = 0;
}

/* Column `a` (over the rows) in terms of the basis, added to `out`; a basic slack's column of the inverse is
 * minus the unit vector of its position, and the inverse keeps the others, those of active rows, alone. */
void solve_basis(const Problem *p, const Work *w, const double *a, double *out)
{
    int M = p->M, N = p->N;
    for (int i = 0; i < M; i++) out[i] = w->basis[i] >= N ? -a[w->basis[i] - N] : 0.0;
    for (int s = 0; s < w->active; s++) {
        double t = a[w->row_of[s]];
        if (t == 0.0) continue;
        const double *column = w->inverse + (size_t)s * M;
        for (int i = 0; i < M; i++) out[i] += t * column[i];
    }
}

/* Put `enter`, whose column in terms of the basis is w->col, at position r; its row slack leaves or another
 * structural. */
void change_basis(const Problem *p, Work *w, int r, int enter)
{
    int M = p->M, N = p->N, leave = w->basis[r];
    const double *col = w->col;
    double inv = 1.0 / col[r];
    for (int s = 0; s < w->active; s++) {
        double *column = w->inverse + (size_t)s * M, t = column[r] * inv;
        if (t == 0.0) continue;
        for (int i = 0; i < M; i++) column[i] -= t * col[i];
        column[r] = t;
    }
    if (leave >= N) { /* its row becomes active */
        double *column = w->inverse + (size_t)w->active * M;
        for (int i = 0; i < M; i++) column[i] = inv * col[i];
        column[r] = -inv;
        w->row_of[w->active] = leave - N;
        w->slot_of[leave - N] = w->active++;
    }
    if (enter >= N) { /* its row is active no more, and the last slot takes its place */
        int s = w->slot_of[enter - N], last = --w->active;
        if (s != last) {
            memcpy(w->inverse + (size_t)s * M, w->inverse + (size_t)last * M, sizeof(double) * (size_t)M);
            w->row_of[s] = w->row_of[last];
            w->slot_of[w->row_of[s]] = s;
        }
    }
    w->where[leave] = -1;
    w->where[enter] = r;
    w->basis[r] = enter;
    w->since++;
}

/* Invert the basis: its structural columns replace slacks one by one, and the slack basis replaces a
 * (numerically) singular one. */
static void load(const Problem *p, Work *w, const int *structurals, int count, const char *keep)
{
    int M = p->M, N = p->N;
    slack_basis(p, w);
    for (int t = 0; t < count; t++) {
        solve_basis(p, w, p->columns + (size_t)structurals[t] * M, w->col);
        int r = -1;
        double best = 1e-12;
        for (int i = 0; i < M; i++) {
            if (w->basis[i] < N || keep[i] || fabs(w->col[i]) <= best) continue;
            best = fabs(w->col[i]);
            r = i;
        }
        if (r < 0) {
            slack_basis(p, w);
            return;
        }
        change_basis(p, w, r, structurals[t]);
    }
    w->since = 0;
}

void load_basis(const Problem *p, Work *w, const int16_t *basis)
{
    int M = p->M, N = p->N, count = 0;
    memset(w->keep, 0, (size_t)M);
    for (int i = 0; i < M; i++) {
        if (basis[i] >= N)
            w->keep[basis[i] - N] = 1;
        else
            w->cand[count++] = basis[i];
    }
    load(p, w, w->cand, count, w->keep);
}

void factor(const Problem *p, Work *w)
{
    int M = p->M, N = p->N, count = 0;
    memset(w->keep, 0, (size_t)M);
    for (int i = 0; i < M; i++) {
        if (w->basis[i] >= N)
            w->keep[w->basis[i] - N] = 1;
        else
            w->cand[count++] = w->basis[i];
    }
    load(p, w, w->cand, count, w->keep);
}

void multipliers(const Problem *p, Work *w)
{
    int M = p->M;
    for (int k = 0; k < M; k++) w->pi[k] = 0.0;
    for (int s = 0; s < w->active; s++) {
        const double *column = w->inverse + (size_t)s * M;
        double t = 0.0;
        for (int i = 0; i < M; i++) t += w->c[w->basis[i]] * column[i];
        w->pi[w->row_of[s]] = t;
    }
}

/* Multipliers, reduced costs, nonbasic values and basic values from scratch for the current basis. */
HOT void recompute(const Problem *p, Work *w)
{
    int M = p->M, N = p->N;
    double *d = w->d;
    multipliers(p, w);
    memcpy(d, w->c, sizeof(double) * (size_t)N);
    for (int k = 0; k < M; k++) {
        double t = w->pi[k];
        d[N + k] = t; /* slack: cost 0, column -e_k */
        if (t == 0.0) continue;
        const double *row = p->A + (size_t)k * N;
        for (int j = 0; j < N; j++) d[j] -= t * row[j];
    }
    for (int j = 0; j < N + M; j++) w->x[j] = d[j] >= 0.0 ? w->L[j] : w->U[j];
    for (int i = 0; i < M; i++) w->x[w->basis[i]] = 0.0;
    for (int k = 0; k < M; k++) w->work[k] = -w->x[N + k];
    for (int j = 0; j < N; j++) {
        double t = w->x[j];
        if (t == 0.0) continue;
        const double *column = p->columns + (size_t)j * M;
        for (int k = 0; k < M; k++) w->work[k] += t * column[k];
    }
    solve_basis(p, w, w->work, w->xB);
    for (int i = 0; i < M; i++) w->xB[i] = -w->xB[i];
}

static void heap_down(int *heap, const double *key, int size, int i)
{
    int item = heap[i];
    double kv = key[item];
    for (;;) {
        int c = 2 * i + 1;
        if (c >= size) break;
        if (c + 1 < size && key[heap[c + 1]] < key[heap[c]]) c++;
        if (key[heap[c]] >= kv) break;
        heap[i] = heap[c];
        i = c;
    }
    heap[i] = item;
}

/* The row to leave: the largest violation in units of its own row of the inverse (dual steepest edge). */
static int leaving_row(const Problem *p, Work *w)
{
    int M = p->M, N = p->N, r = -1, violated = 0;
    double *excess = w->work, *norm = w->col;
    for (int i = 0; i < M; i++) {
        int b = w->basis[i];
        double scale = PRIMAL_TOL * (1.0 + fabs(w->xB[i]));
        double low = w->L[b] - w->xB[i], high = w->xB[i] - w->U[b];
        double most = low > high ? low : high;
        excess[i] = most > scale ? most : 0.0;
        norm[i] = b >= N ? 1.0 : 0.0;
        if (most > scale) {
            violated++;
            r = i;
        }
    }
    if (violated < 2) return r;
    for (int s = 0; s < w->active; s++) {
        const double *column = w->inverse + (size_t)s * M;
        for (int i = 0; i < M; i++) norm[i] += column[i] * column[i];
    }
    double best = 0.0;
    for (int i = 0; i < M; i++) {
        double e = excess[i] * excess[i];
        if (e > best * norm[i]) {
            best = e / norm[i];
            r = i;
        }
    }
    return r;
}

/* Row r of the inverse times the matrix: how basic variable r changes with every other one. */
HOT static void row_of_tableau(const Problem *p, const Work *w, int r, double *alpha)
{
    int M = p->M, N = p->N, b = w->basis[r];
    memset(alpha, 0, sizeof(double) * (size_t)(N + M));
    for (int s = -1; s < w->active; s++) {
        if (s < 0 && b < N) continue;
        int k = s < 0 ? b - N : w->row_of[s];
        double t = s < 0 ? -1.0 : w->inverse[(size_t)s * M + r];
        alpha[N + k] = -t;
        if (t == 0.0) continue;
        const double *row = p->A + (size_t)k * N;
        for (int j = 0; j < N; j++) alpha[j] += t * row[j];
    }
}

/* The break points of the dual step, infinite for a variable that does not limit it; the least and the largest. */
STEER static double break_points(const Problem *p, const Work *w, const double *alpha, double sign, double *ratio,
                                 double *most)
{
    int T = p->N + p->M;
    double least = INFINITY, largest = 0.0;
    const double *d = w->d, *x = w->x, *L = w->L, *U = w->U;
    for (int j = 0; j < T; j++) {
        double a = sign * alpha[j], q = fabs(d[j]) / fabs(a);
        a = x[j] == L[j] ? -a : a;
        ratio[j] = a > PIVOT_TOL && L[j] < U[j] ? q : INFINITY;
    }
    for (int i = 0; i < p->M; i++) ratio[w->basis[i]] = INFINITY;
    for (int j = 0; j < T; j++) {
        double q = ratio[j], finite = q < INFINITY ? q : 0.0;
        least = q < least ? q : least;
        largest = finite > largest ? finite : largest;
    }
    *most = largest;
    return least;
}

/* Dual simplex from the current basis. All variables are boxed, so every basis is dual feasible once
 * the nonbasics sit at the bound that their reduced cost asks for. `start` is the value of the
 * Lagrangian at the first multipliers; the run stops early once it has surely passed `cutoff`. */
HOT int dual_simplex(const Problem *p, Work *w, double start, double cutoff)
{
    int M = p->M, N = p->N, T = N + M;
    int limit = 40 * M + 200;
    double value = start;
    double *alpha = w->alpha, *ratio = w->ratio;
    w->lps++;
    for (int iter = 0; iter < limit; iter++) {
        int r = leaving_row(p, w);
        if (r < 0) return LP_OPTIMAL;
        if (value > cutoff) return LP_CUTOFF;
        int leave = w->basis[r];
        int to_lower = w->xB[r] < w->L[leave];
        double target = to_lower ? w->L[leave] : w->U[leave];
        double slope = to_lower ? target - w->xB[r] : w->xB[r] - target, step = 0.0;
        row_of_tableau(p, w, r, alpha);
        /* x_B[r] + sum alpha_j x_j is constant. To raise x_B[r], x_j must move so that alpha_j dx_j < 0:
         * at its lower bound alpha_j < 0, at its upper bound alpha_j > 0; mirrored when it must fall. */
        double sign = to_lower ? 1.0 : -1.0;
        double most, reach = break_points(p, w, alpha, sign, ratio, &most);
        int enter = -1, flipped = 0, count = 0;
        double done = -1.0;
        for (int k = 0; k < M; k++) w->work[k] = 0.0;
        while (enter < 0) {
            if (count == 0) { /* the next break points, the nearest first: mostly a few are enough */
                reach = done < 0.0 ? 2.0 * reach + 1e-9 : 8.0 * reach;
                if (reach > most) reach = most;
                for (int j = 0; j < T; j++)
                    if (ratio[j] <= reach && ratio[j] > done) w->cand[count++] = j;
                done = reach;
                if (count == 0 && !(reach < most)) break;
                for (int i = count / 2 - 1; i >= 0; i--) heap_down(w->cand, ratio, count, i);
                continue;
            }
            int j = w->cand[0];
            double width = w->U[j] - w->L[j], gain = fabs(alpha[j]) * width;
            value += slope * (ratio[j] - step);
            step = ratio[j];
            if (slope - gain <= 0.0) {
                enter = j;
                break;
            }
            slope -= gain;
            /* passing this break point is worth it: flip j to its other bound and go on */
            double move = w->x[j] == w->L[j] ? width : -width;
            w->x[j] = w->x[j] == w->L[j] ? w->U[j] : w->L[j];
            if (j < N) {
                const double *column = p->columns + (size_t)j * M;
                for (int k = 0; k < M; k++) w->work[k] += column[k] * move;
            } else
                w->work[j - N] -= move;
            flipped = 1;
            w->cand[0] = w->cand[--count];
            if (count > 0) heap_down(w->cand, ratio, count, 0);
        }
        if (enter < 0) {
            /* dual unbounded: leave the ray in `work` for the proof of emptiness */
            for (int k = 0; k < M; k++) w->work[k] = sign * alpha[N + k];
            return LP_INFEASIBLE;
        }
        if (flipped) {
            solve_basis(p, w, w->work, w->col);
            for (int i = 0; i < M; i++) w->xB[i] -= w->col[i];
        }
        if (enter < N)
            solve_basis(p, w, p->columns + (size_t)enter * M, w->col);
        else {
            const double *column = w->inverse + (size_t)w->slot_of[enter - N] * M;
            for (int i = 0; i < M; i++) w->col[i] = -column[i];
        }
        double move = (w->xB[r] - target) / w->col[r];
        double theta = w->d[enter] / alpha[enter];
        for (int j = 0; j < T; j++) w->d[j] -= theta * alpha[j];
        w->d[enter] = 0.0;
        w->d[leave] = -theta;
        for (int i = 0; i < M; i++) w->xB[i] -= move * w->col[i];
        w->xB[r] = w->x[enter] + move;
        int rough = fabs(w->col[r]) > ROUGH || fabs(w->col[r]) < 1.0 / ROUGH;
        change_basis(p, w, r, enter);
        w->x[leave] = target;
        w->pivots++;
        if (rough || w->since >= REFACTOR) {
            factor(p, w);
            recompute(p, w);
        }
    }
    return LP_LIMIT;
}

void primal_point(const Problem *p, Work *w)
{
    for (int j = 0; j < p->N; j++) {
        double t = w->where[j] >= 0 ? w->xB[w->where[j]] : w->x[j];
        w->v[j] = t < w->L[j] ? w->L[j] : (t > w->U[j] ? w->U[j] : t);
    }
}

/* The point of the program that was just solved, in w->v, to the last digits: basic values that were huge on the
 * way lose theirs, and are then computed once more. Whether all rows hold. */
int sharp_point(const Problem *p, Work *w)
{
    int M = p->M, N = p->N;
    for (int attempt = 0;; attempt++) {
        primal_point(p, w);
        int missed = 0;
        for (int k = 0; k < M; k++) w->work[k] = 0.0;
        for (int j = 0; j < N; j++) {
            if (w->v[j] == 0.0) continue;
            const double *column = p->columns + (size_t)j * M;
            for (int k = 0; k < M; k++) w->work[k] += w->v[j] * column[k];
        }
        for (int k = 0; k < M; k++) {
            double low = w->L[N + k] - w->work[k], high = w->work[k] - w->U[N + k];
            double most = (low > high ? low : high) / (1.0 + fabs(w->work[k]));
            if (!(most <= SHARP)) missed = 1; /* or is no number */
        }
        if (!missed) return 1;
        if (attempt > 0) return 0;
        factor(p, w);
        recompute(p, w);
        if (dual_simplex(p, w, -INFINITY, INFINITY) != LP_OPTIMAL) return 0;
    }
}

/* The Lagrangian of min constant + c.x over box and rows at multipliers pi, rounded down; the reduced
 * costs stay in w->alpha. `magnitude` bounds every |c_j| before cancellation. For a feasible x the
 * rounding of the reduced costs is weighted by x itself: its total mass is at most p->mass, and row k
 * sees at most p->row_weight[k] of it; the sums are bounded term by term. */
HOT double lagrangian(const Problem *p, Work *w, const double *c, const double *pi, double constant,
                             double magnitude)
{
    int M = p->M, N = p->N;
    double total = constant, size = fabs(constant), terms = magnitude * p->mass;
    double *d = w->alpha;
    if (c)
        memcpy(d, c, sizeof(double) * (size_t)N);
    else
        memset(d, 0, sizeof(double) * (size_t)N);
    for (int k = 0; k < M; k++) {
        double t = pi[k];
        if (t == 0.0) continue;
        const double *row = p->A + (size_t)k * N;
        for (int j = 0; j < N; j++) d[j] -= t * row[j];
        double s = t * (t > 0.0 ? w->L[N + k] : w->U[N + k]);
        total += s;
        size += fabs(s);
        terms += fabs(t) * p->row_weight[k];
    }
    for (int j = 0; j < N; j++) {
        double s = d[j] > 0.0 ? d[j] * w->L[j] : d[j] * w->U[j];
        total += s;
        size += fabs(s);
    }
    total -= DBL_EPSILON * ((double)(N + M) * size + SAFETY * (double)(M + 4) * terms);
    return isnan(total) ? -INFINITY : total; /* an overflow proves nothing */
}

/* Whether multipliers `ray` prove that box and rows have no common point. */
int proves_empty(const Problem *p, Work *w, const double *ray)
{
    return lagrangian(p, w, NULL, ray, 0.0, 0.0) > 0.0;
}

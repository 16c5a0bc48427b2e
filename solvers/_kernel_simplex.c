/* The problem, a bounded dual simplex for its linear programs, and the bound that rounding cannot break. */

#include "_kernel.h"

/* Primal infeasibility and reduced costs below these count as zero; they steer the simplex only. */
#define PRIMAL_TOL 2e-13
#define PIVOT_TOL 1e-9

double objective(const Problem *p, const double *y, const double *v)
{
    double total = 0.0;
    for (int j = 0; j < p->n; j++)
        if (v[j] > 0.0) total += phi(p->kind, v[j]) - y[j] * v[j];
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
    size_t doubles = 7 * T + 4 * M + 3 * M * M + 2 * n + N, ints = 2 * T + M;
    memset(w, 0, sizeof *w);
    double *at = w->memory = calloc(doubles * sizeof(double) + ints * sizeof(int), 1);
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
    w->Binv = carve(&at, M * M);
    w->gauss = carve(&at, 2 * M * M);
    w->l = carve(&at, n);
    w->u = carve(&at, n);
    w->v = carve(&at, N);
    w->where = (int *)at;
    w->cand = w->where + T;
    w->basis = w->cand + T;
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
    int M = p->M, T = p->N + M;
    for (int j = 0; j < T; j++) w->where[j] = -1;
    memset(w->Binv, 0, sizeof(double) * (size_t)(M * M));
    for (int i = 0; i < M; i++) {
        w->basis[i] = p->N + i;
        w->where[p->N + i] = i;
        w->Binv[i * M + i] = -1.0; /* slack columns are -e_i */
    }
}

/* Invert the basis matrix; the slack basis replaces a (numerically) singular one. */
void factor(const Problem *p, Work *w)
{
    int M = p->M, N = p->N, W = 2 * M;
    double *G = w->gauss;
    memset(G, 0, sizeof(double) * (size_t)(M * W));
    for (int k = 0; k < M; k++) {
        int j = w->basis[k];
        if (j < N)
            for (int i = 0; i < M; i++) G[i * W + k] = p->A[(size_t)i * N + j];
        else
            G[(j - N) * W + k] = -1.0;
        G[k * W + M + k] = 1.0;
    }
    for (int k = 0; k < M; k++) {
        int best = k;
        for (int i = k + 1; i < M; i++)
            if (fabs(G[i * W + k]) > fabs(G[best * W + k])) best = i;
        double pivot = G[best * W + k];
        if (fabs(pivot) < 1e-12) {
            slack_basis(p, w);
            return;
        }
        if (best != k)
            for (int t = 0; t < W; t++) {
                double z = G[k * W + t];
                G[k * W + t] = G[best * W + t];
                G[best * W + t] = z;
            }
        double inv = 1.0 / pivot;
        for (int t = k; t < W; t++) G[k * W + t] *= inv;
        for (int i = 0; i < M; i++) {
            double f = G[i * W + k];
            if (i == k || f == 0.0) continue;
            for (int t = k; t < W; t++) G[i * W + t] -= f * G[k * W + t];
        }
    }
    for (int i = 0; i < M; i++)
        memcpy(w->Binv + (size_t)i * M, G + (size_t)i * W + M, sizeof(double) * (size_t)M);
}

void load_basis(const Problem *p, Work *w, const int16_t *basis)
{
    int T = p->N + p->M;
    for (int j = 0; j < T; j++) w->where[j] = -1;
    for (int i = 0; i < p->M; i++) {
        w->basis[i] = basis[i];
        w->where[basis[i]] = i;
    }
    factor(p, w);
}

/* Multipliers, reduced costs, nonbasic values and basic values from scratch for the current basis. */
HOT void recompute(const Problem *p, Work *w)
{
    int M = p->M, N = p->N;
    for (int k = 0; k < M; k++) w->pi[k] = 0.0;
    for (int i = 0; i < M; i++) {
        double cb = w->c[w->basis[i]];
        if (cb != 0.0)
            for (int k = 0; k < M; k++) w->pi[k] += cb * w->Binv[i * M + k];
    }
    memcpy(w->d, w->c, sizeof(double) * (size_t)N);
    for (int k = 0; k < M; k++) {
        double t = w->pi[k];
        w->d[N + k] = t; /* slack: cost 0, column -e_k */
        if (t == 0.0) continue;
        const double *row = p->A + (size_t)k * N;
        double *d = w->d;
        for (int j = 0; j < N; j++) d[j] -= t * row[j];
    }
    for (int j = 0; j < N + M; j++) w->x[j] = w->where[j] >= 0 ? 0.0 : (w->d[j] >= 0.0 ? w->L[j] : w->U[j]);
    for (int k = 0; k < M; k++) {
        const double *row = p->A + (size_t)k * N;
        double s = 0.0;
        for (int j = 0; j < N; j++) s += row[j] * w->x[j];
        w->work[k] = s - w->x[N + k];
    }
    for (int i = 0; i < M; i++) {
        double s = 0.0;
        for (int k = 0; k < M; k++) s -= w->Binv[i * M + k] * w->work[k];
        w->xB[i] = s;
    }
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

/* Dual simplex from the current basis. All variables are boxed, so every basis is dual feasible once
 * the nonbasics sit at the bound that their reduced cost asks for. `start` is the value of the
 * Lagrangian at the first multipliers; the run stops early once it has surely passed `cutoff`. */
HOT int dual_simplex(const Problem *p, Work *w, double start, double cutoff)
{
    int M = p->M, N = p->N, T = N + M;
    int limit = 40 * M + 200;
    double value = start;
    int since = 0;
    w->lps++;
    for (int iter = 0; iter < limit; iter++) {
        int r = -1;
        double worst = 0.0;
        for (int i = 0; i < M; i++) {
            int b = w->basis[i];
            double scale = PRIMAL_TOL * (1.0 + fabs(w->xB[i]));
            double low = w->L[b] - w->xB[i], high = w->xB[i] - w->U[b];
            double viol = low > high ? low : high;
            if (viol > scale && viol > worst) {
                worst = viol;
                r = i;
            }
        }
        if (r < 0) return LP_OPTIMAL;
        if (value > cutoff) return LP_CUTOFF;
        int leave = w->basis[r];
        int to_lower = w->xB[r] < w->L[leave];
        double target = to_lower ? w->L[leave] : w->U[leave];
        const double *rho = w->Binv + (size_t)r * M;
        double *alpha = w->alpha;
        memset(alpha, 0, sizeof(double) * (size_t)N);
        for (int k = 0; k < M; k++) {
            double t = rho[k];
            alpha[N + k] = -t;
            if (t == 0.0) continue;
            const double *row = p->A + (size_t)k * N;
            for (int j = 0; j < N; j++) alpha[j] += t * row[j];
        }
        /* x_B[r] + sum alpha_j x_j is constant. To raise x_B[r], x_j must move so that alpha_j dx_j < 0:
         * at its lower bound alpha_j < 0, at its upper bound alpha_j > 0; mirrored when it must fall. */
        double sign = to_lower ? 1.0 : -1.0;
        int count = 0;
        for (int j = 0; j < T; j++) {
            if (w->where[j] >= 0 || w->L[j] == w->U[j]) continue;
            double a = sign * alpha[j];
            int at_lower = w->x[j] == w->L[j];
            if (at_lower ? a < -PIVOT_TOL : a > PIVOT_TOL) {
                double q = fabs(w->d[j]) / fabs(a);
                w->ratio[j] = q;
                w->cand[count++] = j;
            }
        }
        for (int i = count / 2 - 1; i >= 0; i--) heap_down(w->cand, w->ratio, count, i);
        double slope = worst, step = 0.0;
        int enter = -1;
        for (int k = 0; k < M; k++) w->work[k] = 0.0;
        int flipped = 0;
        while (count > 0) {
            int j = w->cand[0];
            double reach = fabs(alpha[j]) * (w->U[j] - w->L[j]);
            value += slope * (w->ratio[j] - step);
            step = w->ratio[j];
            if (slope - reach <= 0.0) {
                enter = j;
                break;
            }
            slope -= reach;
            /* passing this break point is worth it: flip j to its other bound and go on */
            double move = w->x[j] == w->L[j] ? w->U[j] - w->L[j] : w->L[j] - w->U[j];
            w->x[j] = w->x[j] == w->L[j] ? w->U[j] : w->L[j];
            if (j < N)
                for (int k = 0; k < M; k++) w->work[k] += p->A[(size_t)k * N + j] * move;
            else
                w->work[j - N] -= move;
            flipped = 1;
            w->cand[0] = w->cand[--count];
            if (count > 0) heap_down(w->cand, w->ratio, count, 0);
        }
        if (enter < 0) {
            /* dual unbounded: leave the ray in `work` for the proof of emptiness */
            for (int k = 0; k < M; k++) w->work[k] = -sign * rho[k];
            return LP_INFEASIBLE;
        }
        if (flipped)
            for (int i = 0; i < M; i++) {
                double s = 0.0;
                for (int k = 0; k < M; k++) s += w->Binv[i * M + k] * w->work[k];
                w->xB[i] -= s;
            }
        for (int i = 0; i < M; i++) {
            if (enter < N) {
                double s = 0.0;
                for (int k = 0; k < M; k++) s += w->Binv[i * M + k] * p->A[(size_t)k * N + enter];
                w->col[i] = s;
            } else
                w->col[i] = -w->Binv[i * M + (enter - N)];
        }
        double pivot = w->col[r];
        double move = (w->xB[r] - target) / pivot;
        double theta = w->d[enter] / alpha[enter];
        for (int j = 0; j < T; j++) w->d[j] -= theta * alpha[j];
        w->d[enter] = 0.0;
        w->d[leave] = -theta;
        for (int i = 0; i < M; i++) w->xB[i] -= move * w->col[i];
        w->xB[r] = w->x[enter] + move;
        w->where[leave] = -1;
        w->x[leave] = target;
        w->where[enter] = r;
        w->basis[r] = enter;
        double inv = 1.0 / pivot;
        for (int k = 0; k < M; k++) w->Binv[r * M + k] *= inv;
        for (int i = 0; i < M; i++) {
            double f = w->col[i];
            if (i == r || f == 0.0) continue;
            for (int k = 0; k < M; k++) w->Binv[i * M + k] -= f * w->Binv[r * M + k];
        }
        w->pivots++;
        if (++since >= 60) {
            factor(p, w);
            recompute(p, w);
            since = 0;
        }
    }
    return LP_LIMIT;
}

void multipliers(const Problem *p, Work *w)
{
    int M = p->M;
    for (int k = 0; k < M; k++) w->pi[k] = 0.0;
    for (int i = 0; i < M; i++) {
        double cb = w->c[w->basis[i]];
        if (cb != 0.0)
            for (int k = 0; k < M; k++) w->pi[k] += cb * w->Binv[i * M + k];
    }
}

void primal_point(const Problem *p, Work *w)
{
    for (int j = 0; j < p->N; j++) {
        double t = w->where[j] >= 0 ? w->xB[w->where[j]] : w->x[j];
        w->v[j] = t < w->L[j] ? w->L[j] : (t > w->U[j] ? w->U[j] : t);
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

/* Branch and bound for the minimum of a separable concave function over a set of probability vectors with
 * uncertain rows: f as in `_kernel.c`, over the v >= 0, sum v = 1, whose w_x = v_x / point_x satisfies
 *
 *     h_s <= ratio g_t (s != t),    h_s <= upper (pi_s h_s + sum over t != s of pi_t g_t),
 *     g_s >= lower (pi_s g_s + sum over t != s of pi_t h_t)
 *
 * for every pi of a box in the simplex, where h_s and g_s are the largest and the smallest p.w over the box of s,
 * {lo_s <= p <= hi_s, sum p = 1}. These are linear rows a.v <= 0, one for each choice of vertices of the boxes:
 * far too many to list. A sort of w finds those that a point violates most, so the linear programs begin with a
 * few rows and take in what their solutions violate; a row whose slack is basic is dropped again, which keeps the
 * basis as small as the number of tight rows. Tree, chords and bounds are those of `_kernel.c`; a bound is the
 * Lagrangian over the rows at hand, and a row fewer only makes it lower.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <float.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Primal infeasibility and reduced costs below these count as zero; they steer the simplex only. */
#define PRIMAL_TOL 2e-13
#define PIVOT_TOL 1e-9
/* Violations below this are left: of the bounded set, where a row fewer costs next to nothing, and of the set
 * that columns must lie in, whose margin and exact repair take care of it. */
#define OUTER_TOL 1e-9
#define INNER_TOL 1e-12
/* Rounding allowance of the Lagrangian, as in `_kernel.c`. */
#define SAFETY 16.0
/* Rows that fail by less than this share of the worst one wait for the next round. */
#define SHARE_OF_WORST 1.0
#define SMALLEST_WIDTH 1e-9


/* The dense loops over all columns are most of the time; where compiler and system can choose a version
 * at load time, they use the wider vectors of the machine at hand. */
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__linux__) && defined(__GLIBC__)
#define HOT __attribute__((target_clones("avx2,fma", "default")))
#else
#define HOT
#endif

static double now_seconds(void)
{
    struct timespec t;
#ifdef CLOCK_MONOTONIC
    clock_gettime(CLOCK_MONOTONIC, &t);
#else
    timespec_get(&t, TIME_UTC);
#endif
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ------------------------------------------------------------------ problem and work space */

typedef struct {
    int n, N, S;             /* N = n: there are no auxiliary columns */
    double *lo, *spread;     /* S x (n + 1): the last place has w = rest whatever v is */
    double *room;            /* S: 1 - sum lo */
    double *scale;           /* n: 1 / point */
    double *pi_lo, *pi_spread, pi_room;
    double ratio, upper, lower; /* infinity, infinity, 0 where a side is free */
    double rest;                /* w of the last place */
    double margin, allowance;   /* rows are a.v <= -margin for columns, a.v <= allowance for bounds */
    double *root_u;
} Problem;

/* Rows that a basis or an open node refers to. */
typedef struct {
    double *a;               /* capacity x n */
    double *least, *weight;  /* least and largest |entry| */
    int *refs, *unused;
    int capacity, free;
} Pool;

typedef struct {
    int M, cap;          /* rows at hand, the first one is sum v = 1; room for so many */
    int *id;             /* cap: row of the pool */
    int inner;
    double loose;        /* violations of the bounded set that are left */
    double *ones;
    double *L, *U, *c;   /* n + cap: structurals, then slacks s = a.v */
    double *x, *d;
    double *alpha;
    int *where;
    int *basis;          /* cap */
    double *Binv;        /* cap x cap */
    double *xB, *pi, *work, *col;
    double *gauss;       /* cap x 2 cap */
    int *cand;
    double *ratio;
    double *l, *u, *v, *g, *gain; /* n */
    /* separation */
    int *order;          /* n + 1, by falling w, kept from call to call */
    double *w;           /* n + 1 */
    double *h, *gg;      /* S */
    double *p;           /* n + 1 */
    double *row;         /* n + 1 */
    double *share;       /* S */
    int *rank;           /* S */
    int since;           /* pivots since the last factorisation */
    double end;          /* when a local search is cut short */
    long long pivots, lps;
    Pool pool;
} Work;

static double *row_of(const Work *w, int k, int n)
{
    return k == 0 ? w->ones : w->pool.a + (size_t)w->id[k] * (size_t)n;
}

static double phi(double x)
{
    if (x <= 0.0) return 0.0;
    return -x * log(x);
}

static double objective(const Problem *p, const double *y, const double *v)
{
    double total = 0.0;
    for (int j = 0; j < p->n; j++) if (v[j] > 0.0) total += phi(v[j]) - y[j] * v[j];
    return total;
}

static void work_free(Work *w)
{
    free(w->id); free(w->ones); free(w->L); free(w->U); free(w->c); free(w->x); free(w->d); free(w->alpha);
    free(w->where); free(w->basis); free(w->Binv); free(w->xB); free(w->pi); free(w->work); free(w->col);
    free(w->gauss); free(w->cand); free(w->ratio); free(w->l); free(w->u); free(w->v); free(w->g); free(w->gain);
    free(w->order); free(w->w); free(w->h); free(w->gg); free(w->p); free(w->row); free(w->share); free(w->rank);
    memset(w, 0, sizeof *w);
}

static int work_init(Work *w, const Problem *p)
{
    memset(w, 0, sizeof *w);
    w->cap = 2 * p->n + 64;
    size_t n = (size_t)p->n, M = (size_t)w->cap, T = n + M, S = (size_t)p->S;
    w->id = calloc(M, sizeof(int)); w->ones = calloc(n, 8); w->L = calloc(T, 8); w->U = calloc(T, 8);
    w->c = calloc(T, 8); w->x = calloc(T, 8); w->d = calloc(T, 8); w->alpha = calloc(T, 8);
    w->where = calloc(T, sizeof(int)); w->basis = calloc(M, sizeof(int)); w->Binv = calloc(M * M, 8);
    w->xB = calloc(M, 8); w->pi = calloc(M, 8); w->work = calloc(M, 8); w->col = calloc(M, 8);
    w->gauss = calloc(2 * M * M, 8); w->cand = calloc(T, sizeof(int)); w->ratio = calloc(T, 8);
    w->l = calloc(n, 8); w->u = calloc(n, 8); w->v = calloc(n, 8); w->g = calloc(n, 8); w->gain = calloc(n, 8);
    w->order = calloc(n + 1, sizeof(int)); w->w = calloc(n + 1, 8); w->h = calloc(S, 8); w->gg = calloc(S, 8);
    w->p = calloc(n + 1, 8); w->row = calloc(n + 1, 8); w->share = calloc(S, 8); w->rank = calloc(S, sizeof(int));
    if (!w->id || !w->ones || !w->L || !w->U || !w->c || !w->x || !w->d || !w->alpha || !w->where || !w->basis
        || !w->Binv || !w->xB || !w->pi || !w->work || !w->col || !w->gauss || !w->cand || !w->ratio || !w->l || !w->u
        || !w->v || !w->g || !w->gain || !w->order || !w->w || !w->h || !w->gg || !w->p || !w->row || !w->share || !w->rank) {
        work_free(w);
        return -1;
    }
    for (int j = 0; j < p->n; j++) w->ones[j] = 1.0;
    for (int j = 0; j <= p->n; j++) w->order[j] = j;
    return 0;
}

/* ------------------------------------------------------------------ rows that come and go */

static void row_release(Pool *q, int id)
{
    if (--q->refs[id] == 0) q->unused[q->free++] = id;
}

/* A place for one more row, with one reference; -1 without memory. */
static int row_new(Pool *q, int n)
{
    if (q->free == 0) {
        int cap = q->capacity ? 2 * q->capacity : 1024;
        double *a = realloc(q->a, sizeof(double) * (size_t)cap * (size_t)n);
        if (a) q->a = a;
        double *least = realloc(q->least, sizeof(double) * (size_t)cap);
        if (least) q->least = least;
        double *weight = realloc(q->weight, sizeof(double) * (size_t)cap);
        if (weight) q->weight = weight;
        int *refs = realloc(q->refs, sizeof(int) * (size_t)cap);
        if (refs) q->refs = refs;
        int *unused = realloc(q->unused, sizeof(int) * (size_t)cap);
        if (unused) q->unused = unused;
        if (!a || !least || !weight || !refs || !unused) return -1;
        for (int i = cap - 1; i >= q->capacity; i--) q->unused[q->free++] = i;
        q->capacity = cap;
    }
    int id = q->unused[--q->free];
    q->refs[id] = 1;
    return id;
}

/* The ends of the slack of row k. A row's value is never below its least entry, which makes every variable boxed. */
static void bound_row(const Problem *p, Work *w, int k)
{
    int j = p->n + k;
    if (k == 0) w->L[j] = w->U[j] = 1.0;
    else {
        double least = w->pool.least[w->id[k]];
        w->U[j] = w->inner ? -p->margin : p->allowance;
        w->L[j] = (least < w->U[j] ? least : w->U[j]) - 1e-9 * (1.0 + fabs(least));
    }
    w->c[j] = 0.0;
}

static void set_rows(const Problem *p, Work *w, int inner)
{
    w->inner = inner;
    for (int k = 0; k < w->M; k++) bound_row(p, w, k);
}

/* One more row, its slack basic with the value `value`. */
static void append_row(const Problem *p, Work *w, int id, double value)
{
    int n = p->n, k = w->M++, cap = w->cap;
    w->id[k] = id;
    const double *a = row_of(w, k, n);
    double *last = w->Binv + (size_t)k * (size_t)cap;
    for (int t = 0; t <= k; t++) last[t] = 0.0;
    for (int i = 0; i < k; i++) {
        double *row = w->Binv + (size_t)i * (size_t)cap;
        row[k] = 0.0;
        if (w->basis[i] < n) {
            double f = a[w->basis[i]];
            if (f != 0.0) for (int t = 0; t < k; t++) last[t] += f * row[t];
        }
    }
    last[k] = -1.0;
    w->basis[k] = n + k;
    w->where[n + k] = k;
    w->xB[k] = value;
    w->d[n + k] = w->x[n + k] = w->alpha[n + k] = 0.0;
    bound_row(p, w, k);
}

/* Drop the rows whose slacks are basic: they hold nothing. */
static void drop_rows(const Problem *p, Work *w)
{
    int n = p->n, cap = w->cap;
    for (int k = w->M - 1; k > 0; k--) {
        int i = w->where[n + k];
        if (i < 0) continue;
        int last = w->M - 1;
        row_release(&w->pool, w->id[k]);
        if (i != last) {
            memcpy(w->Binv + (size_t)i * (size_t)cap, w->Binv + (size_t)last * (size_t)cap, sizeof(double) * (size_t)w->M);
            w->basis[i] = w->basis[last];
            w->xB[i] = w->xB[last];
            w->where[w->basis[i]] = i;
        }
        if (k != last) {
            for (int t = 0; t < last; t++) w->Binv[(size_t)t * (size_t)cap + k] = w->Binv[(size_t)t * (size_t)cap + last];
            w->id[k] = w->id[last];
            int from = n + last, to = n + k;
            w->L[to] = w->L[from]; w->U[to] = w->U[from]; w->x[to] = w->x[from]; w->d[to] = w->d[from];
            w->where[to] = w->where[from];
            if (w->where[to] >= 0) w->basis[w->where[to]] = to;
        }
        w->M--;
    }
}

static void forget_rows(Work *w)
{
    for (int k = 1; k < w->M; k++) row_release(&w->pool, w->id[k]);
    w->M = 1;
}

/* p of largest (sign 1) or smallest (sign -1) p.w over the box of s, added to `to` times `factor`. */
static void add_vertex(const Problem *p, const Work *w, int s, int sign, double factor, double *to)
{
    int n = p->n + 1;
    const double *lo = p->lo + (size_t)s * (size_t)n, *spread = p->spread + (size_t)s * (size_t)n;
    double room = p->room[s];
    for (int j = 0; j < n; j++) to[j] += factor * lo[j];
    for (int i = 0; i < n && room > 0.0; i++) {
        int j = w->order[sign > 0 ? i : n - 1 - i];
        double taken = spread[j] < room ? spread[j] : room;
        to[j] += factor * taken;
        room -= taken;
    }
}

/* The shares that make the mean of the values least (sign 1) or largest (sign -1), in w->share. */
static double extreme_mean(const Problem *p, Work *w, const double *values, int s, double own, int sign)
{
    int S = p->S;
    double mean = 0.0, room = p->pi_room;
    for (int t = 0; t < S; t++) {
        w->share[t] = p->pi_lo[t];
        mean += p->pi_lo[t] * (t == s ? own : values[t]);
    }
    for (int t = 0; t < S; t++) { /* few symbols: insertion sort */
        double key = sign * (t == s ? own : values[t]);
        int i = t;
        for (; i > 0; i--) {
            int other = w->rank[i - 1];
            if (sign * (other == s ? own : values[other]) <= key) break;
            w->rank[i] = other;
        }
        w->rank[i] = t;
    }
    for (int i = 0; i < S && room > 0.0; i++) {
        int t = w->rank[i];
        double taken = p->pi_spread[t] < room ? p->pi_spread[t] : room;
        w->share[t] += taken;
        mean += taken * (t == s ? own : values[t]);
        room -= taken;
    }
    return mean;
}

/* h and g of the point in w->v. */
HOT static void extremes(const Problem *p, Work *w)
{
    int n = p->n + 1, S = p->S;
    for (int j = 0; j < n - 1; j++) w->w[j] = w->v[j] * p->scale[j];
    w->w[n - 1] = p->rest;
    for (int i = 1; i < n; i++) { /* the order of the last call is nearly right */
        int j = w->order[i], k = i;
        double key = w->w[j];
        for (; k > 0 && w->w[w->order[k - 1]] < key; k--) w->order[k] = w->order[k - 1];
        w->order[k] = j;
    }
    for (int s = 0; s < S; s++) {
        const double *lo = p->lo + (size_t)s * (size_t)n, *spread = p->spread + (size_t)s * (size_t)n;
        double base = 0.0, most = 0.0, least = 0.0, room = p->room[s];
        for (int j = 0; j < n; j++) base += lo[j] * w->w[j];
        for (int i = 0; i < n && room > 0.0; i++) {
            int j = w->order[i];
            double taken = spread[j] < room ? spread[j] : room;
            most += taken * w->w[j];
            room -= taken;
        }
        room = p->room[s];
        for (int i = n - 1; i >= 0 && room > 0.0; i--) {
            int j = w->order[i];
            double taken = spread[j] < room ? spread[j] : room;
            least += taken * w->w[j];
            room -= taken;
        }
        w->h[s] = base + most;
        w->gg[s] = base + least;
    }
}

/* Put the row in w->row into the pool and the program. */
static int take_row(const Problem *p, Work *w, double value)
{
    int n = p->n, id = row_new(&w->pool, n);
    if (id < 0) return -1;
    double *a = w->pool.a + (size_t)id * (size_t)n, least = INFINITY, weight = 0.0;
    for (int j = 0; j < n; j++) {
        a[j] = w->row[j] * p->scale[j] + p->rest * w->row[n];
        if (a[j] < least) least = a[j];
        if (fabs(a[j]) > weight) weight = fabs(a[j]);
    }
    w->pool.least[id] = least;
    w->pool.weight[id] = weight;
    append_row(p, w, id, value);
    return 1;
}

/* Add the most violated row of each kind at w->v; returns their number, -1 without memory, -2 without room. */
static int separate(const Problem *p, Work *w)
{
    int S = p->S, added = 0, n = p->n;
    double rhs = w->inner ? -p->margin : p->allowance, tol = w->inner ? INNER_TOL : w->loose;
    extremes(p, w);
    if (p->ratio < INFINITY && S > 1) {
        int s = -1, t = -1;
        double worst = -INFINITY;
        for (int a = 0; a < S; a++) for (int b = 0; b < S; b++) {
            if (a == b) continue;
            double viol = w->h[a] - p->ratio * w->gg[b];
            if (viol > worst) { worst = viol; s = a; t = b; }
        }
        /* with the worst pair, what fails against either of its members */
        for (int k = 0; k < 2 * S; k++) {
            int a = k < S ? k : s, b = k < S ? t : k - S;
            double viol = w->h[a] - p->ratio * w->gg[b];
            if (a == b || (k >= S && b == t) || !(viol > rhs + tol * (1.0 + w->h[a])) || viol < SHARE_OF_WORST * worst) continue;
            if (w->M >= w->cap) { if (added) break; return -2; }
            memset(w->row, 0, sizeof(double) * (size_t)(n + 1));
            add_vertex(p, w, a, 1, 1.0, w->row);
            add_vertex(p, w, b, -1, -p->ratio, w->row);
            if (take_row(p, w, viol) < 0) return -1;
            added++;
        }
    }
    for (int side = 0; side < 2; side++) {
        double factor = side == 0 ? p->upper : p->lower;
        if (side == 0 ? !(factor < INFINITY) : !(factor > 0.0)) continue;
        const double *own = side == 0 ? w->h : w->gg, *others = side == 0 ? w->gg : w->h;
        int sign = side == 0 ? 1 : -1, worst_s = -1;
        double worst = -INFINITY;
        for (int s = 0; s < S; s++) {
            double viol = sign * (own[s] - factor * extreme_mean(p, w, others, s, own[s], sign));
            if (viol > worst) { worst = viol; worst_s = s; }
        }
        if (worst > rhs + tol * (1.0 + w->h[worst_s])) {
            if (w->M >= w->cap) return -2;
            extreme_mean(p, w, others, worst_s, own[worst_s], sign);
            memset(w->row, 0, sizeof(double) * (size_t)(n + 1));
            for (int t = 0; t < S; t++) {
                double f = -sign * factor * w->share[t];
                if (t == worst_s) add_vertex(p, w, t, sign, sign + f, w->row);
                else if (f != 0.0) add_vertex(p, w, t, -sign, f, w->row);
            }
            if (take_row(p, w, worst) < 0) return -1;
            added++;
        }
    }
    return added;
}

/* ------------------------------------------------------------------ bounded dual simplex */

static void slack_basis(const Problem *p, Work *w)
{
    int M = w->M, T = p->n + w->cap;
    for (int j = 0; j < T; j++) w->where[j] = -1;
    for (int i = 0; i < M; i++) memset(w->Binv + (size_t)i * (size_t)w->cap, 0, sizeof(double) * (size_t)M);
    for (int i = 0; i < M; i++) {
        w->basis[i] = p->n + i;
        w->where[p->n + i] = i;
        w->Binv[(size_t)i * (size_t)w->cap + (size_t)i] = -1.0; /* slack columns are -e_i */
    }
}

/* Invert the basis matrix; the slack basis replaces a (numerically) singular one. */
static void factor(const Problem *p, Work *w)
{
    int M = w->M, N = p->n, W = 2 * M;
    double *G = w->gauss;
    w->since = 0;
    memset(G, 0, sizeof(double) * (size_t)(M * W));
    for (int k = 0; k < M; k++) {
        int j = w->basis[k];
        if (j < N) for (int i = 0; i < M; i++) G[i * W + k] = row_of(w, i, N)[j];
        else G[(j - N) * W + k] = -1.0;
        G[k * W + M + k] = 1.0;
    }
    for (int k = 0; k < M; k++) {
        int best = k;
        for (int i = k + 1; i < M; i++) if (fabs(G[i * W + k]) > fabs(G[best * W + k])) best = i;
        double pivot = G[best * W + k];
        if (fabs(pivot) < 1e-12) { slack_basis(p, w); return; }
        if (best != k) for (int t = 0; t < W; t++) { double z = G[k * W + t]; G[k * W + t] = G[best * W + t]; G[best * W + t] = z; }
        double inv = 1.0 / pivot;
        for (int t = k; t < W; t++) G[k * W + t] *= inv;
        for (int i = 0; i < M; i++) {
            double f = G[i * W + k];
            if (i == k || f == 0.0) continue;
            for (int t = k; t < W; t++) G[i * W + t] -= f * G[k * W + t];
        }
    }
    for (int i = 0; i < M; i++) memcpy(w->Binv + (size_t)i * (size_t)w->cap, G + (size_t)i * W + M, sizeof(double) * (size_t)M);
}

/* The rows and the basis of an open node. */
static void load_basis(const Problem *p, Work *w, int m, const int *id, const int16_t *basis)
{
    forget_rows(w);
    w->M = m;
    for (int k = 1; k < m; k++) { w->id[k] = id[k]; w->pool.refs[id[k]]++; }
    for (int j = 0; j < p->n + w->cap; j++) w->where[j] = -1;
    for (int i = 0; i < m; i++) { w->basis[i] = basis[i]; w->where[basis[i]] = i; }
    set_rows(p, w, 0);
    factor(p, w);
}

/* Multipliers, reduced costs, nonbasic values and basic values from scratch for the current basis. */
HOT static void recompute(const Problem *p, Work *w)
{
    int M = w->M, N = p->n, n = N;
    for (int k = 0; k < M; k++) w->pi[k] = 0.0;
    for (int i = 0; i < M; i++) {
        double cb = w->c[w->basis[i]];
        if (cb != 0.0) for (int k = 0; k < M; k++) w->pi[k] += cb * w->Binv[(size_t)i * (size_t)w->cap + (size_t)k];
    }
    memcpy(w->d, w->c, sizeof(double) * (size_t)N);
    for (int k = 0; k < M; k++) {
        double t = w->pi[k];
        w->d[N + k] = t; /* slack: cost 0, column -e_k */
        if (t == 0.0) continue;
        const double *row = row_of(w, k, n);
        double *d = w->d;
        for (int j = 0; j < N; j++) d[j] -= t * row[j];
    }
    for (int j = 0; j < N + M; j++) w->x[j] = w->where[j] >= 0 ? 0.0 : (w->d[j] >= 0.0 ? w->L[j] : w->U[j]);
    for (int k = 0; k < M; k++) {
        const double *row = row_of(w, k, n);
        double s = 0.0;
        for (int j = 0; j < N; j++) s += row[j] * w->x[j];
        w->work[k] = s - w->x[N + k];
    }
    for (int i = 0; i < M; i++) {
        double s = 0.0;
        for (int k = 0; k < M; k++) s -= w->Binv[(size_t)i * (size_t)w->cap + (size_t)k] * w->work[k];
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

enum { LP_OPTIMAL, LP_INFEASIBLE, LP_LIMIT, LP_CUTOFF, LP_MEMORY };

/* Rounds of new rows in one program of a node, and in others; it is cut short beyond, which costs sharpness
 * alone, and children go on with the rows of their parent. */
#define NODE_ROUNDS 8
/* Rounds of new rows after which those that hold nothing go, if the value has risen since, so that nothing goes round
 * in circles: a program that needs hundreds of rounds would carry hundreds of rows. */
#define DROP_ROUNDS 10
#define MOST_ROUNDS 500
/* Seconds that one local search may take: on hundreds of symbols with wide intervals it may need thousands of rows, and
 * no limit would hold. */
#define PATIENCE 1.0

/* Dual simplex from the current basis. All variables are boxed, so every basis is dual feasible once
 * the nonbasics sit at the bound that their reduced cost asks for. `*reached` is the value of the
 * Lagrangian at the first multipliers, and at the last ones afterwards; the run stops early once it has surely passed `cutoff`. */
HOT static int dual_simplex(const Problem *p, Work *w, double *reached, double cutoff)
{
    int M = w->M, N = p->n, n = N, T = N + M;
    int limit = 40 * M + 200;
    double value = *reached;
    w->lps++;
    for (int iter = 0; iter < limit; iter++) {
        int r = -1;
        double worst = 0.0;
        for (int i = 0; i < M; i++) {
            int b = w->basis[i];
            double scale = PRIMAL_TOL * (1.0 + fabs(w->xB[i]));
            double low = w->L[b] - w->xB[i], high = w->xB[i] - w->U[b];
            double viol = low > high ? low : high;
            if (viol > scale && viol > worst) { worst = viol; r = i; }
        }
        *reached = value;
        if (r < 0) return LP_OPTIMAL;
        if (value > cutoff) return LP_CUTOFF;
        int leave = w->basis[r];
        int to_lower = w->xB[r] < w->L[leave];
        double target = to_lower ? w->L[leave] : w->U[leave];
        const double *rho = w->Binv + (size_t)r * (size_t)w->cap;
        double *alpha = w->alpha;
        memset(alpha, 0, sizeof(double) * (size_t)N);
        for (int k = 0; k < M; k++) {
            double t = rho[k];
            alpha[N + k] = -t;
            if (t == 0.0) continue;
            const double *row = row_of(w, k, n);
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
            if (slope - reach <= 0.0) { enter = j; break; }
            slope -= reach;
            /* passing this break point is worth it: flip j to its other bound and go on */
            double move = w->x[j] == w->L[j] ? w->U[j] - w->L[j] : w->L[j] - w->U[j];
            w->x[j] = w->x[j] == w->L[j] ? w->U[j] : w->L[j];
            if (j < N) for (int k = 0; k < M; k++) w->work[k] += row_of(w, k, n)[j] * move;
            else w->work[j - N] -= move;
            flipped = 1;
            w->cand[0] = w->cand[--count];
            if (count > 0) heap_down(w->cand, w->ratio, count, 0);
        }
        if (enter < 0) {
            /* dual unbounded: leave the ray in `work` for the proof of emptiness */
            for (int k = 0; k < M; k++) w->work[k] = -sign * rho[k];
            return LP_INFEASIBLE;
        }
        if (flipped) for (int i = 0; i < M; i++) {
            double s = 0.0;
            for (int k = 0; k < M; k++) s += w->Binv[(size_t)i * (size_t)w->cap + (size_t)k] * w->work[k];
            w->xB[i] -= s;
        }
        for (int i = 0; i < M; i++) {
            if (enter < N) {
                double s = 0.0;
                for (int k = 0; k < M; k++) s += w->Binv[(size_t)i * (size_t)w->cap + (size_t)k] * row_of(w, k, n)[enter];
                w->col[i] = s;
            } else w->col[i] = -w->Binv[(size_t)i * (size_t)w->cap + (size_t)(enter - N)];
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
        for (int k = 0; k < M; k++) w->Binv[(size_t)r * (size_t)w->cap + (size_t)k] *= inv;
        for (int i = 0; i < M; i++) {
            double f = w->col[i];
            if (i == r || f == 0.0) continue;
            for (int k = 0; k < M; k++) w->Binv[(size_t)i * (size_t)w->cap + (size_t)k] -= f * w->Binv[(size_t)r * (size_t)w->cap + (size_t)k];
        }
        w->pivots++;
        if (++w->since >= 60) { factor(p, w); recompute(p, w); }
    }
    return LP_LIMIT;
}

static void multipliers(const Problem *p, Work *w)
{
    (void)p;
    int M = w->M;
    for (int k = 0; k < M; k++) w->pi[k] = 0.0;
    for (int i = 0; i < M; i++) {
        double cb = w->c[w->basis[i]];
        if (cb != 0.0) for (int k = 0; k < M; k++) w->pi[k] += cb * w->Binv[(size_t)i * (size_t)w->cap + (size_t)k];
    }
}

static void primal_point(const Problem *p, Work *w)
{
    for (int j = 0; j < p->n; j++) {
        double t = w->where[j] >= 0 ? w->xB[w->where[j]] : w->x[j];
        w->v[j] = t < w->L[j] ? w->L[j] : (t > w->U[j] ? w->U[j] : t);
    }
}

/* The Lagrangian of min constant + c.x over box and rows at multipliers pi, rounded down; the reduced
 * costs stay in w->alpha. `magnitude` bounds every |c_j| before cancellation. For a feasible x the
 * rounding of the reduced costs is weighted by x itself: its total mass is one, and row k
 * sees at most its largest entry of it; the sums are bounded term by term. */
HOT static double lagrangian(const Problem *p, Work *w, const double *c, const double *pi, double constant, double magnitude)
{
    int M = w->M, N = p->n, n = N;
    double total = constant, size = fabs(constant), terms = magnitude;
    double *d = w->alpha;
    if (c) memcpy(d, c, sizeof(double) * (size_t)N);
    else memset(d, 0, sizeof(double) * (size_t)N);
    for (int k = 0; k < M; k++) {
        double t = pi[k];
        if (t == 0.0) continue;
        const double *row = row_of(w, k, n);
        for (int j = 0; j < N; j++) d[j] -= t * row[j];
        double s = t * (t > 0.0 ? w->L[N + k] : w->U[N + k]);
        total += s;
        size += fabs(s);
        terms += fabs(t) * (k == 0 ? 1.0 : w->pool.weight[w->id[k]]);
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
static int proves_empty(const Problem *p, Work *w, const double *ray)
{
    return lagrangian(p, w, NULL, ray, 0.0, 0.0) > 0.0;
}

/* Solve over all rows: take in what the solution violates until it violates none. */
static int solve_rows(const Problem *p, Work *w, double start, double cutoff)
{
    double reached = start, least = -INFINITY;
    int most = w->inner ? MOST_ROUNDS : NODE_ROUNDS;
    for (int round = 0; round < most; round++) {
        if (w->inner && now_seconds() > w->end) return LP_LIMIT;
        int status = dual_simplex(p, w, &reached, cutoff);
        if (status != LP_OPTIMAL) return status;
        primal_point(p, w);
        if (round % DROP_ROUNDS == DROP_ROUNDS - 1) {
            double value = 0.0;
            for (int j = 0; j < p->n; j++) value += w->c[j] * w->v[j];
            if (value > least) { least = value + 1e-12 * (1.0 + fabs(value)); drop_rows(p, w); }
        }
        int added = separate(p, w);
        if (added == 0) return LP_OPTIMAL;
        if (added == -1) return LP_MEMORY;
        if (added == -2) {
            int before = w->M;
            drop_rows(p, w);
            if (w->M == before) return LP_LIMIT;
        }
    }
    return LP_LIMIT;
}

/* `solve_rows`; a local search that is cut short keeps the member that it has in w->v, for the points on the way
 * violate rows. */
static int solve(const Problem *p, Work *w, double start, double cutoff)
{
    if (w->inner) memcpy(w->g, w->v, sizeof(double) * (size_t)p->n);
    int status = solve_rows(p, w, start, cutoff);
    if (w->inner && status != LP_OPTIMAL) memcpy(w->v, w->g, sizeof(double) * (size_t)p->n);
    return status;
}

/* ------------------------------------------------------------------ the tree */

typedef struct Box {
    int refs, m;
    int *id;        /* m: rows; the first is none of the pool */
    float *l, *u;   /* n each, rounded outwards */
    int16_t *basis; /* m */
    float cap;      /* of the coordinates whose rank is below a node's `after` */
    int16_t *rank;  /* n */
} Box;

typedef struct {
    double bound;
    Box *box;
    int k;          /* coordinate whose interval differs from the box */
    float l, u;
    int after;      /* ranks below it are capped */
} Node;

typedef struct {
    PyObject_HEAD
    Problem p;
    Work w;
    double *y;
    double magnitude;
    double cutoff, column_cutoff;
    double best;        /* least cost of a point seen so far: steers, proves nothing */
    double tolerance, slack, leaf;
    Node *heap;
    int size, capacity;
    double closed;      /* least bound of leaves that cannot be split further */
    long long nodes, boxes, peak_boxes, box_limit;
    /* columns found: compressed rows */
    int ncols, col_capacity, nnz, nnz_capacity, max_columns;
    int *indptr, *indices;
    double *values, *costs;
    int busy;
} Search;

static Box *box_new(Search *s, const double *l, const double *u)
{
    int n = s->p.n, M = s->w.M;
    size_t ints = sizeof(int) * (size_t)M, floats = sizeof(float) * 2 * (size_t)n;
    Box *b = malloc(sizeof(Box) + ints + floats + sizeof(int16_t) * (size_t)(M + n));
    if (!b) return NULL;
    b->refs = 0;
    b->m = M;
    b->id = (int *)(b + 1);
    b->l = (float *)(b->id + M);
    b->u = b->l + n;
    b->basis = (int16_t *)(b->u + n);
    b->rank = b->basis + M;
    b->cap = 1.0f;
    for (int j = 0; j < n; j++) {
        float a = (float)l[j], z = (float)u[j];
        if ((double)a > l[j]) a = nextafterf(a, -1.0f);
        if ((double)z < u[j]) z = nextafterf(z, 2.0f);
        b->l[j] = a < 0.0f ? 0.0f : a;
        b->u[j] = z;
    }
    b->id[0] = 0;
    for (int k = 1; k < M; k++) { b->id[k] = s->w.id[k]; s->w.pool.refs[b->id[k]]++; }
    for (int i = 0; i < M; i++) b->basis[i] = (int16_t)s->w.basis[i];
    if (++s->boxes > s->peak_boxes) s->peak_boxes = s->boxes;
    return b;
}

static void box_drop(Search *s, Box *b)
{
    if (--b->refs > 0) return;
    for (int k = 1; k < b->m; k++) row_release(&s->w.pool, b->id[k]);
    free(b);
    s->boxes--;
}

static inline int basis_size(const Problem *p, const Work *w) { (void)p; return w->M; }

/* Whoever takes a point looks at its rows, for the set's margin takes care of little. */
static inline int sharp_point(const Problem *p, Work *w) { primal_point(p, w); return 1; }

static void no_rows(const Problem *p, Work *w)
{
    forget_rows(w);
    set_rows(p, w, 0);
    slack_basis(p, w);
}

static void load_box(Search *s, const Box *box)
{
    s->w.loose = s->leaf > OUTER_TOL ? s->leaf : OUTER_TOL;
    load_basis(&s->p, &s->w, box->m, box->id, box->basis);
}

/* Wide intervals leave vertices few zeros, narrow ones on many symbols two or three entries: then cutting one
 * coordinate at a time, which moves what it forbids to the next one, takes three times as long. */
static int is_sparse(const Problem *p, const Work *w)
{
    int positive = 0;
    for (int j = 0; j < p->n; j++) positive += w->v[j] > 1e-12;
    return 2 * positive <= p->n;
}

#define TREE static
#define SPARSE is_sparse(p, w)
#define TO_MIDDLE 0.5
#include "_tree.h"

/* ------------------------------------------------------------------ the Python type */

static void Search_dealloc(Search *s)
{
    clear_tree(s);
    free(s->heap); free(s->indptr); free(s->indices); free(s->values); free(s->costs); free(s->y);
    free(s->p.lo); free(s->p.spread); free(s->p.room); free(s->p.scale); free(s->p.pi_lo); free(s->p.pi_spread);
    free(s->p.root_u);
    free(s->w.pool.a); free(s->w.pool.least); free(s->w.pool.weight); free(s->w.pool.refs); free(s->w.pool.unused);
    work_free(&s->w);
    PyTypeObject *type = Py_TYPE(s);
    type->tp_free((PyObject *)s);
    Py_DECREF(type);
}

/* A search works for one thread at a time; after Ctrl-C another one may still be at work in it. */
static int enter(Search *s)
{
    if (s->busy) {
        PyErr_SetString(PyExc_RuntimeError, "this search is still at work in another thread; wait for it or make another one");
        return -1;
    }
    s->busy = 1;
    return 0;
}

/* A private copy of `count` doubles from a buffer. */
static double *copy_doubles(PyObject *source, Py_ssize_t count, const char *name)
{
    Py_buffer view;
    if (PyObject_GetBuffer(source, &view, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT) < 0) return NULL;
    double *out = NULL;
    if (view.itemsize != 8 || !view.format || strcmp(view.format, "d") != 0 || view.len != 8 * count)
        PyErr_Format(PyExc_ValueError, "%s must be a contiguous array of %zd float64", name, count);
    else if (!(out = malloc(sizeof(double) * (size_t)(count > 0 ? count : 1)))) PyErr_NoMemory();
    else memcpy(out, view.buf, (size_t)view.len);
    PyBuffer_Release(&view);
    return out;
}

static PyObject *Search_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"lower", "spread", "room", "scale", "share_lower", "share_spread", "share_room", "ratio", "upper", "least", "margin", "allowance", "rest", "top", NULL};
    PyObject *lo, *spread, *room, *scale, *pi_lo, *pi_spread, *top;
    double pi_room, ratio, upper, lower, margin, allowance, rest;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OOOOOOdddddddO", names, &lo, &spread, &room, &scale, &pi_lo, &pi_spread, &pi_room, &ratio, &upper, &lower, &margin, &allowance, &rest, &top)) return NULL;
    Py_ssize_t n = PyObject_Length(scale), S = PyObject_Length(room);
    if (n < 1 || S < 1 || 3 * n + 64 > INT16_MAX) {
        if (!PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "wrong sizes: at least one box and one coordinate, at most 10900 coordinates");
        return NULL;
    }
    Search *s = (Search *)type->tp_alloc(type, 0);
    if (!s) return NULL;
    Problem *p = &s->p;
    p->n = p->N = (int)n; p->S = (int)S;
    p->pi_room = pi_room; p->ratio = ratio; p->upper = upper; p->lower = lower;
    p->margin = margin; p->allowance = allowance; p->rest = rest;
    if (!(p->lo = copy_doubles(lo, S * (n + 1), "lower")) || !(p->spread = copy_doubles(spread, S * (n + 1), "spread"))
        || !(p->room = copy_doubles(room, S, "room")) || !(p->scale = copy_doubles(scale, n, "scale"))
        || !(p->pi_lo = copy_doubles(pi_lo, S, "share_lower")) || !(p->pi_spread = copy_doubles(pi_spread, S, "share_spread"))
        || !(p->root_u = copy_doubles(top, n, "top"))) {
        Py_DECREF(s);
        return NULL;
    }
    s->y = calloc((size_t)n, sizeof(double));
    if (!s->y || work_init(&s->w, p) < 0) {
        Py_DECREF(s);
        return PyErr_NoMemory();
    }
    s->w.M = 1;
    s->w.loose = OUTER_TOL;
    set_rows(p, &s->w, 0);
    slack_basis(p, &s->w);
    return (PyObject *)s;
}

static PyObject *Search_start(Search *s, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"y", "cutoff", "tolerance", "slack", "column_cutoff", "max_columns", "box_limit", "part", "parts", NULL};
    PyObject *y;
    double cutoff, column_cutoff, tolerance, slack;
    int max_columns, part = 0, parts = 1;
    long long box_limit;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OddddiL|ii", names, &y, &cutoff, &tolerance, &slack, &column_cutoff, &max_columns, &box_limit, &part, &parts)) return NULL;
    double *copy = copy_doubles(y, s->p.n, "y");
    if (!copy) return NULL;
    if (enter(s) < 0) { free(copy); return NULL; }
    free(s->y);
    s->y = copy;
    double top = 0.0;
    for (int j = 0; j < s->p.n; j++) if (fabs(copy[j]) > top) top = fabs(copy[j]);
    s->magnitude = top + 100.0; /* |log u| of a positive float32 stays below 104 */
    s->cutoff = cutoff;
    s->column_cutoff = column_cutoff;
    s->max_columns = max_columns;
    s->box_limit = box_limit;
    s->tolerance = tolerance;
    s->slack = slack;
    s->leaf = 0.1 * tolerance;
    s->w.loose = s->leaf > OUTER_TOL ? s->leaf : OUTER_TOL;
    s->best = s->closed = INFINITY;
    s->nodes = 0;
    s->ncols = s->nnz = 0;
    s->w.pivots = s->w.lps = 0;
    clear_tree(s);
    s->peak_boxes = s->boxes;
    int failed;
    Py_BEGIN_ALLOW_THREADS
    failed = split_root(s, part, parts);
    forget_rows(&s->w);
    slack_basis(&s->p, &s->w);
    Py_END_ALLOW_THREADS
    s->busy = 0;
    if (failed) return PyErr_NoMemory();
    Py_RETURN_NONE;
}

enum { RUN_DONE, RUN_PAUSED, RUN_COLUMNS, RUN_MEMORY };

static PyObject *Search_run(Search *s, PyObject *args)
{
    long long nodes;
    double seconds;
    int columns;
    if (!PyArg_ParseTuple(args, "Ldi", &nodes, &seconds, &columns)) return NULL;
    int outcome = RUN_DONE, failed = 0;
    if (enter(s) < 0) return NULL;
    Py_BEGIN_ALLOW_THREADS
    double end = now_seconds() + seconds;
    long long first = s->nodes;
    while (s->size > 0) {
        if (s->ncols >= columns) { outcome = RUN_COLUMNS; break; }
        if (s->boxes > s->box_limit) { outcome = RUN_MEMORY; break; }
        if (s->nodes - first >= nodes || ((s->nodes & 15) == 0 && now_seconds() > end)) { outcome = RUN_PAUSED; break; }
        Node node = pop(s);
        s->w.end = now_seconds() + PATIENCE;
        if (node.bound > s->cutoff) { box_drop(s, node.box); continue; } /* the cutoff has moved */
        failed = process(s, node);
        box_drop(s, node.box);
        if (failed) break;
    }
    Py_END_ALLOW_THREADS
    s->busy = 0;
    if (failed) return PyErr_NoMemory();
    return PyLong_FromLong(outcome);
}

/* Local searches from w e_j + (1 - w) center for j = first, first + step, ..., one at least, until the time is
 * over; returns the next j. They go on from the basis that the last one left, across calls, too. */
static PyObject *Search_descend(Search *s, PyObject *args)
{
    PyObject *source;
    double weight;
    int first, step;
    double seconds;
    if (!PyArg_ParseTuple(args, "Odiid", &source, &weight, &first, &step, &seconds)) return NULL;
    if (first < 0 || step < 1) {
        PyErr_SetString(PyExc_ValueError, "first must be at least 0 and step at least 1");
        return NULL;
    }
    int n = s->p.n, failed = 0, j = first;
    double *center = copy_doubles(source, n, "center");
    if (!center) return NULL;
    if (enter(s) < 0) { free(center); return NULL; }
    Py_BEGIN_ALLOW_THREADS
    double end = now_seconds() + seconds;
    for (; j < n && !failed && (j == first || now_seconds() <= end); j += step) {
        if (s->ncols >= s->max_columns) { j = n; break; }
        for (int i = 0; i < n; i++) s->w.v[i] = (1.0 - weight) * center[i];
        s->w.v[j] += weight;
        s->w.end = now_seconds() + PATIENCE;
        failed = take_column(s, descend(s, 0)) < 0;
    }
    Py_END_ALLOW_THREADS
    s->busy = 0;
    free(center);
    if (failed) return PyErr_NoMemory();
    return PyLong_FromLong(j);
}

/* Safe upper bounds of the coordinates first, first + 1, ... over the outer set, by one linear program each,
 * one at least, until the time is over: (next coordinate, all bounds as known so far). */
static PyObject *Search_tighten(Search *s, PyObject *args)
{
    int first, j;
    double seconds;
    if (!PyArg_ParseTuple(args, "id", &first, &seconds)) return NULL;
    if (first < 0) {
        PyErr_SetString(PyExc_ValueError, "first must be at least 0");
        return NULL;
    }
    if (enter(s) < 0) return NULL;
    const Problem *p = &s->p;
    Work *w = &s->w;
    PyObject *out = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)sizeof(double) * p->n);
    if (!out) { s->busy = 0; return NULL; }
    double *top = (double *)PyBytes_AS_STRING(out);
    Py_BEGIN_ALLOW_THREADS
    double end = now_seconds() + seconds;
    set_rows(p, w, 0);
    for (int i = 0; i < p->n; i++) { w->L[i] = 0.0; w->U[i] = p->root_u[i]; w->c[i] = 0.0; }
    if (first == 0) { forget_rows(w); slack_basis(p, w); }
    for (j = first; j < p->n && (j == first || now_seconds() <= end); j++) {
        w->c[j] = -1.0;
        recompute(p, w);
        solve(p, w, -INFINITY, INFINITY);
        multipliers(p, w);
        double b = -lagrangian(p, w, w->c, w->pi, 0.0, 1.0);
        if (b < p->root_u[j]) p->root_u[j] = b > 0.0 ? b : 0.0;
        w->U[j] = p->root_u[j]; /* at once, so that pauses change nothing */
        w->c[j] = 0.0;
        drop_rows(p, w);
    }
    memcpy(top, p->root_u, sizeof(double) * (size_t)p->n);
    Py_END_ALLOW_THREADS
    s->busy = 0;
    return Py_BuildValue("iN", j, out);
}

/* min cost.x over the outer set: (status, safe bound, point). */
static PyObject *Search_linear(Search *s, PyObject *args)
{
    PyObject *cost;
    if (!PyArg_ParseTuple(args, "O", &cost)) return NULL;
    const Problem *p = &s->p;
    Work *w = &s->w;
    double *c = copy_doubles(cost, p->n, "cost");
    if (!c) return NULL;
    if (enter(s) < 0) { free(c); return NULL; }
    double magnitude = 0.0;
    set_rows(p, w, 0);
    for (int j = 0; j < p->n; j++) {
        w->L[j] = 0.0;
        w->U[j] = p->root_u[j];
        w->c[j] = j < p->n ? c[j] : 0.0;
        if (fabs(w->c[j]) > magnitude) magnitude = fabs(w->c[j]);
    }
    free(c);
    forget_rows(w);
    slack_basis(p, w);
    recompute(p, w);
    int status = solve(p, w, -INFINITY, INFINITY);
    double bound;
    if (status == LP_INFEASIBLE) {
        for (int k = 0; k < w->M; k++) w->pi[k] = w->work[k];
        int proven = proves_empty(p, w, w->pi);
        for (int k = 0; k < w->M && !proven; k++) w->pi[k] = -w->pi[k];
        if (!proven) proven = proves_empty(p, w, w->pi);
        bound = proven ? INFINITY : -INFINITY;
    } else {
        multipliers(p, w);
        bound = lagrangian(p, w, w->c, w->pi, 0.0, magnitude);
    }
    primal_point(p, w);
    s->busy = 0;
    PyObject *point = PyBytes_FromStringAndSize((char *)w->v, (Py_ssize_t)sizeof(double) * p->n);
    if (!point) return NULL;
    return Py_BuildValue("idN", status, bound, point);
}

static PyObject *Search_columns(Search *s, PyObject *Py_UNUSED(ignored))
{
    int zero = 0;
    if (enter(s) < 0) return NULL;
    s->busy = 0;
    return Py_BuildValue("iy#y#y#y#", s->ncols,
        s->ncols ? (char *)s->indptr : (char *)&zero, (Py_ssize_t)(sizeof(int) * (size_t)(s->ncols + 1)),
        s->ncols ? (char *)s->indices : "", (Py_ssize_t)(sizeof(int) * (size_t)s->nnz),
        s->ncols ? (char *)s->values : "", (Py_ssize_t)(sizeof(double) * (size_t)s->nnz),
        s->ncols ? (char *)s->costs : "", (Py_ssize_t)(sizeof(double) * (size_t)s->ncols));
}

static PyObject *Search_state(Search *s, PyObject *Py_UNUSED(ignored))
{
    if (enter(s) < 0) return NULL;
    s->busy = 0;
    double open = s->size ? s->heap[0].bound : INFINITY;
    double bound = open < s->closed ? open : s->closed;
    if (s->cutoff < bound) bound = s->cutoff; /* pruned nodes are only known to lie above the cutoff */
    return Py_BuildValue("diiLLLL", bound, s->size, s->ncols, s->nodes, s->w.lps, s->w.pivots, s->peak_boxes);
}

static PyMethodDef Search_methods[] = {
    {"start", (PyCFunction)(void (*)(void))Search_start, METH_VARARGS | METH_KEYWORDS, "Begin a tree for the prices y."},
    {"run", (PyCFunction)Search_run, METH_VARARGS, "Work on the tree: run(nodes, seconds, columns) -> outcome."},
    {"descend", (PyCFunction)Search_descend, METH_VARARGS, "Local searches from mixtures of unit vectors and a center: descend(center, weight, first, step, seconds) -> next."},
    {"tighten", (PyCFunction)Search_tighten, METH_VARARGS, "Upper bounds of the columns by linear programs: tighten(first, seconds) -> (next, bounds as bytes)."},
    {"linear", (PyCFunction)Search_linear, METH_VARARGS, "Minimum of a linear function: (status, bound, point)."},
    {"columns", (PyCFunction)Search_columns, METH_NOARGS, "(count, indptr, indices, values, costs) as bytes."},
    {"state", (PyCFunction)Search_state, METH_NOARGS, "(bound, open, columns, nodes, lps, pivots, peak boxes)."},
    {NULL, NULL, 0, NULL}};

static PyType_Slot Search_slots[] = {
    {Py_tp_new, Search_new}, {Py_tp_dealloc, Search_dealloc}, {Py_tp_methods, Search_methods},
    {Py_tp_doc, "Branch and bound for a separable concave function over probability vectors with uncertain rows."}, {0, NULL}};

static PyType_Spec Search_spec = {"solvers._robust.Search", sizeof(Search), 0, Py_TPFLAGS_DEFAULT, Search_slots};

static int kernel_exec(PyObject *module)
{
    PyObject *type = PyType_FromModuleAndSpec(module, &Search_spec, NULL);
    if (!type) return -1;
    int failed = PyModule_AddObjectRef(module, "Search", type);
    Py_DECREF(type);
    return failed;
}

static PyModuleDef_Slot kernel_slots[] = {{Py_mod_exec, kernel_exec}, {0, NULL}};
static struct PyModuleDef kernel = {PyModuleDef_HEAD_INIT, "solvers._robust", "Compiled kernel of `solvers.concave.RobustSearch`.", 0, NULL, kernel_slots, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__robust(void) { return PyModuleDef_Init(&kernel); }

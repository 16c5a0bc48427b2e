/* Local search from vertex to vertex: all neighbours of a vertex are priced, and the best one is the next.
 *
 * Successive linearisation ends at a vertex from which no single step downhill leads, but whose neighbours may be
 * cheaper all the same, for between two vertices a concave function rises first.
 */

#include "_kernel.h"

/* A step shorter than this leads nowhere: the vertex is degenerate. */
#define SHORTEST_STEP 1e-9
#define PIVOT_TOL 1e-9
#define MOST_STEPS 100

typedef struct {
    double length, cost;
    int leave; /* position in the basis, -1 if the entering variable goes to its other end */
} Step;

/* Along the edge on which nonbasic variable q moves; its column in terms of the basis is left in w->col. */
static Step edge(const Search *s, Work *w, int q, double rest)
{
    const Problem *p = &s->p;
    int M = p->M, N = p->N, n = p->n;
    double up = w->x[q] == w->L[q] ? 1.0 : -1.0;
    Step step = {w->U[q] - w->L[q], 0.0, -1};
    if (q < N)
        solve_basis(p, w, p->columns + (size_t)q * M, w->col);
    else {
        const double *column = w->inverse + (size_t)w->slot_of[q - N] * M;
        for (int i = 0; i < M; i++) w->col[i] = -column[i];
    }
    for (int i = 0; i < M; i++) {
        double fall = up * w->col[i];
        if (fabs(fall) < PIVOT_TOL) continue;
        int b = w->basis[i];
        double t = fall > 0.0 ? (w->xB[i] - w->L[b]) / fall : (w->xB[i] - w->U[b]) / fall;
        if (t < step.length) {
            step.length = t > 0.0 ? t : 0.0;
            step.leave = i;
        }
    }
    if (step.length < SHORTEST_STEP) return step;
    double to = w->x[q] + up * step.length;
    double cost = rest - (q < n && w->x[q] > 0.0 ? phi(w->x[q]) - s->y[q] * w->x[q] : 0.0);
    if (q < n) cost += phi(to) - s->y[q] * to;
    for (int i = 0; i < M; i++) {
        int b = w->basis[i];
        double x = w->xB[i] - up * step.length * w->col[i];
        if (b < n && i != step.leave && x > 0.0) cost += phi(x) - s->y[b] * x;
        if (b < n && i == step.leave && up * w->col[i] < 0.0) cost += phi(w->U[b]) - s->y[b] * w->U[b];
    }
    step.cost = cost;
    return step;
}

static void move(const Problem *p, Work *w, int q, Step step)
{
    double up = w->x[q] == w->L[q] ? 1.0 : -1.0, to = w->x[q] + up * step.length;
    for (int i = 0; i < p->M; i++) w->xB[i] -= up * step.length * w->col[i];
    if (step.leave < 0) {
        w->x[q] = up > 0.0 ? w->U[q] : w->L[q];
        return;
    }
    int leave = w->basis[step.leave];
    w->x[leave] = up * w->col[step.leave] > 0.0 ? w->L[leave] : w->U[leave];
    change_basis(p, w, step.leave, q);
    w->xB[step.leave] = to;
    w->x[q] = 0.0;
    w->pivots++;
}

/* From the vertex of the basis to ever cheaper neighbours; returns the cost of the last, in w->v. */
double walk(Search *s)
{
    const Problem *p = &s->p;
    Work *w = &s->w;
    int M = p->M, N = p->N, n = p->n;
    for (int moves = 0; moves < MOST_STEPS; moves++) {
        double rest = 0.0, cost = 0.0;
        for (int j = 0; j < n; j++)
            if (w->where[j] < 0 && w->x[j] > 0.0) rest += phi(w->x[j]) - s->y[j] * w->x[j];
        cost = rest;
        for (int i = 0; i < M; i++)
            if (w->basis[i] < n && w->xB[i] > 0.0) cost += phi(w->xB[i]) - s->y[w->basis[i]] * w->xB[i];
        int next = -1;
        double least = cost - 1e-12;
        for (int q = 0; q < N + M; q++) {
            if (w->where[q] >= 0 || w->L[q] == w->U[q]) continue;
            Step step = edge(s, w, q, rest);
            if (step.length < SHORTEST_STEP) continue;
            if (step.cost < least) {
                least = step.cost;
                next = q;
            }
        }
        if (next < 0) break;
        Step step = edge(s, w, next, rest);
        move(p, w, next, step);
    }
    primal_point(p, w);
    return descend(s, 2);
}

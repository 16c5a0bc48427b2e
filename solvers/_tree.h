/* The tree of boxes, the nodes, and the points found on the way, for the kernels of `_kernel.h` and of `_robust.c`.
 *
 * Each of them defines Problem, Work, Box, Node and Search with the fields that are used here, the program of a box
 * (`set_rows`, `slack_basis`, `factor`, `recompute`, `solve`, `multipliers`, `primal_point`, `sharp_point`,
 * `lagrangian`, `proves_empty`, `basis_size`), what it does with rows that hold nothing (`drop_rows`, `no_rows`: back to the rows
 * and the basis that every program begins with), how an open node is kept (`box_new`, `box_drop`, `load_box`), and
 * TREE, how the functions for others are linked, SPARSE, whether most entries of the point in w->v are zero, and TO_MIDDLE,
 * where an interval is cut, between the point of the linear program (0) and the middle (1): at the point alone a small
 * coordinate leaves an upper part whose chord is hardly better than before.
 */

static int push(Search *s, Node node)
{
    if (s->size == s->capacity) {
        int cap = s->capacity ? 2 * s->capacity : 1024;
        Node *h = realloc(s->heap, sizeof(Node) * (size_t)cap);
        if (!h) return -1;
        s->heap = h;
        s->capacity = cap;
    }
    int i = s->size++;
    while (i > 0) {
        int up = (i - 1) / 2;
        if (s->heap[up].bound <= node.bound) break;
        s->heap[i] = s->heap[up];
        i = up;
    }
    s->heap[i] = node;
    node.box->refs++;
    return 0;
}

TREE Node pop(Search *s)
{
    Node top = s->heap[0], last = s->heap[--s->size];
    int i = 0;
    for (;;) {
        int c = 2 * i + 1;
        if (c >= s->size) break;
        if (c + 1 < s->size && s->heap[c + 1].bound < s->heap[c].bound) c++;
        if (s->heap[c].bound >= last.bound) break;
        s->heap[i] = s->heap[c];
        i = c;
    }
    if (s->size) s->heap[i] = last;
    return top;
}

TREE void clear_tree(Search *s)
{
    for (int i = 0; i < s->size; i++) box_drop(s, s->heap[i].box);
    s->size = 0;
}

/* ------------------------------------------------------------------ points found */

static int add_column(Search *s, const double *v, double cost)
{
    int n = s->p.n, count = 0;
    if (s->ncols >= s->max_columns) return 0;
    for (int j = 0; j < n; j++)
        if (v[j] > 0.0) count++;
    /* a vertex met twice is met with the same support and the same cost to many digits */
    for (int c = 0; c < s->ncols; c++) {
        if (s->indptr[c + 1] - s->indptr[c] != count || fabs(s->costs[c] - cost) > 1e-10) continue;
        int same = 1;
        for (int t = s->indptr[c]; t < s->indptr[c + 1] && same; t++)
            same = fabs(v[s->indices[t]] - s->values[t]) < 1e-9;
        if (same) return 0;
    }
    if (s->ncols + 2 > s->col_capacity) {
        int cap = s->col_capacity ? 2 * s->col_capacity : 256;
        int *a = realloc(s->indptr, sizeof(int) * (size_t)(cap + 1));
        if (a) s->indptr = a;
        double *b = realloc(s->costs, sizeof(double) * (size_t)cap);
        if (b) s->costs = b;
        if (!a || !b) return -1;
        s->col_capacity = cap;
    }
    if (s->nnz + count > s->nnz_capacity) {
        int cap = 2 * (s->nnz + count) + 1024;
        int *a = realloc(s->indices, sizeof(int) * (size_t)cap);
        if (a) s->indices = a;
        double *b = realloc(s->values, sizeof(double) * (size_t)cap);
        if (b) s->values = b;
        if (!a || !b) return -1;
        s->nnz_capacity = cap;
    }
    if (s->ncols == 0) s->indptr[0] = 0;
    for (int j = 0; j < n; j++)
        if (v[j] > 0.0) {
            s->indices[s->nnz] = j;
            s->values[s->nnz++] = v[j];
        }
    s->costs[s->ncols++] = cost;
    s->indptr[s->ncols] = s->nnz;
    return 1;
}

/* A point of this cost is known: nodes are of interest only below it, less the tolerance and the share
 * `slack` of the cost (far from optimal prices a sharper bound would enumerate a sublevel set for nothing). */
static void note_cost(Search *s, double cost)
{
    if (cost >= s->best) return;
    s->best = cost;
    s->leaf = 0.1 * (s->tolerance + s->slack * fabs(cost));
    double c = cost - s->tolerance - s->slack * fabs(cost);
    if (c < s->cutoff) s->cutoff = c;
}

/* Keep the point in w->v if it is cheap enough. Without slack only the minimum is asked for, so from
 * then on only cheaper points are. */
TREE int take_column(Search *s, double cost)
{
    if (cost < s->column_cutoff && add_column(s, s->w.v, cost) < 0) return -1;
    note_cost(s, cost);
    if (s->slack == 0.0 && cost < s->column_cutoff) s->column_cutoff = cost;
    return 0;
}

/* Smoothing of the entropy's slope at zero during descent: large first, so that a support can still
 * change, then small, so that the end point is a true local minimum. */
static const double SMOOTH[3] = {0.05, 1e-3, 1e-9};

/* Local search by successive linearisation from w->v, inside the inner set, beginning at smoothing
 * `stage`. With the last stage alone no step goes uphill. The point reached is a vertex; returns its
 * cost, or infinity if the first linear program did not finish. */
TREE double descend(Search *s, int stage)
{
    const Problem *p = &s->p;
    Work *w = &s->w;
    int n = p->n, N = p->N;
    double best = INFINITY;
    set_rows(p, w, 1);
    for (int j = 0; j < N; j++) {
        w->L[j] = 0.0;
        w->U[j] = p->root_u[j];
        w->c[j] = 0.0;
    }
    for (int round = 0; round < 24; round++) {
        double eps = SMOOTH[stage], at_zero = -log(eps);
        for (int j = 0; j < n; j++) {
            double x = w->v[j];
            w->c[j] = (x > eps ? -log(x) : at_zero) - s->y[j];
        }
        recompute(p, w);
        if (solve(p, w, -INFINITY, INFINITY) != LP_OPTIMAL)
            return round > 0 ? objective(p, s->y, w->v) : INFINITY;
        if (!sharp_point(p, w)) return INFINITY;
        drop_rows(p, w);
        for (int j = 0; j < n; j++)
            if (w->v[j] < 1e-13) w->v[j] = 0.0;
        double cost = objective(p, s->y, w->v);
        if (stage == 2 && cost >= best - 1e-12) return cost;
        if (cost < best - 1e-12)
            best = cost;
        else
            stage++;
    }
    return objective(p, s->y, w->v);
}

/* ------------------------------------------------------------------ nodes */

/* Chord costs of the box in w->l, w->u; returns the constant term. */
static double set_chords(Search *s)
{
    const Problem *p = &s->p;
    Work *w = &s->w;
    double constant = 0.0, last = 1.0, last_log = 0.0; /* most upper ends are equal to their neighbour's */
    for (int j = 0; j < p->n; j++) {
        double l = w->l[j], u = w->u[j], slope = 0.0;
        w->L[j] = l;
        w->U[j] = u;
        if (u > l) {
            if (l == 0.0) {
                if (u != last) {
                    last = u;
                    last_log = log(u);
                }
                slope = -last_log;
            } else if (u - l > SMALLEST_WIDTH * u) {
                slope = (phi(u) - phi(l)) / (u - l);
            } else { /* too narrow for a difference quotient: the lower end value is a bound up to its width */
                double a = phi(l), b = phi(u);
                constant += (a < b ? a : b) - s->y[j] * l - fabs(s->y[j]) * (u - l);
                w->c[j] = 0.0;
                continue;
            }
            slope -= s->y[j];
        }
        w->c[j] = slope;
        if (l > 0.0) constant += phi(l) - s->y[j] * l - slope * l;
    }
    for (int j = p->n; j < p->N; j++) {
        w->L[j] = 0.0;
        w->U[j] = p->root_u[j];
        w->c[j] = 0.0;
    }
    return constant;
}

/* Upper ends that the sum leaves to each coordinate; 0 if the box misses the simplex. */
static int tighten_by_sum(const Problem *p, Work *w)
{
    double low = 0.0, high = 0.0;
    for (int j = 0; j < p->n; j++) {
        low += w->l[j];
        high += w->u[j];
    }
    if (low > 1.0 + 1e-7 || high < 1.0 - 1e-7) return 0;
    double room = 1.0 - low + 1e-12 + DBL_EPSILON * p->n; /* the sum's own rounding */
    for (int j = 0; j < p->n; j++) {
        double top = w->l[j] + (room > 0.0 ? room : 0.0);
        if (top < w->u[j]) w->u[j] = top;
    }
    return 1;
}

/* Solve the chord program of the box in w->l, w->u from the basis in w; returns its safe bound. `*reduced`
 * is the bound that the reduced costs left in w->alpha stand for: not always the better one. */
static double node_bound(Search *s, int *status, double *constant, double *reduced)
{
    Work *w = &s->w;
    *constant = set_chords(s);
    recompute(&s->p, w);
    double start = *reduced = lagrangian(&s->p, w, w->c, w->pi, *constant, s->magnitude);
    if (start > s->cutoff) {
        *status = LP_CUTOFF;
        return start;
    }
    *status = solve(&s->p, w, start, s->cutoff + 1e-9);
    if (*status == LP_INFEASIBLE) {
        double *ray = w->xB; /* free to use: the basis is left behind */
        memcpy(ray, w->work, sizeof(double) * (size_t)basis_size(&s->p, w));
        if (proves_empty(&s->p, w, ray)) return INFINITY;
        for (int k = 0; k < basis_size(&s->p, w); k++) ray[k] = -ray[k];
        if (proves_empty(&s->p, w, ray)) return INFINITY;
        *status = LP_LIMIT;
        recompute(&s->p, w);
    }
    multipliers(&s->p, w);
    double b = *reduced = lagrangian(&s->p, w, w->c, w->pi, *constant, s->magnitude);
    return b > start ? b : start;
}

/* With cutoff - bound = g, a coordinate with reduced cost d > 0 at its lower end cannot exceed
 * l + g/d in any point that beats the cutoff (and mirrored). Uses the reduced costs in w->alpha. */
static double tighten_by_cost(Search *s, double bound)
{
    Work *w = &s->w;
    double g = (s->cutoff - bound) * (1.0 + 1e-9) + 1e-14, shrunk = 0.0;
    for (int j = 0; j < s->p.n; j++) {
        double d = w->alpha[j], l = w->l[j], u = w->u[j];
        if (u <= l) continue;
        if (d > 0.0) {
            double top = l + g / d;
            if (top < u) {
                shrunk += 1.0 - (top - l) / (u - l);
                w->u[j] = top;
            }
        } else if (d < 0.0) {
            double bottom = u + g / d;
            if (bottom > l) {
                shrunk += 1.0 - (u - bottom) / (u - l);
                w->l[j] = bottom;
            }
        }
    }
    return shrunk;
}

/* A node where a coordinate from zero up is to be cut is split by which one of all those exceeds the cut, the first in
 * some order, or none does: one child of them caps them all, where cuts one by one would move what they forbid to the
 * next coordinate. Those that cannot exceed it below the cutoff are capped at once; the others stand in w->cand, the
 * dearest first, with bounds in w->gain, from the reduced costs that `reduced` stands for. Their number. */
static int rest_children(Search *s, double reduced, double cut)
{
    const Problem *p = &s->p;
    Work *w = &s->w;
    int count = 0;
    for (int j = 0; j < p->n; j++) {
        double u = w->u[j], d = w->alpha[j];
        if (w->l[j] > 0.0 || w->L[j] > 0.0 || u <= cut) continue;
        double old = d > 0.0 ? 0.0 : d * w->U[j], shift = d - w->c[j];
        double at_cut = phi(cut) - s->y[j] * cut + shift * cut, at_u = phi(u) - s->y[j] * u + shift * u;
        double b = reduced - old + (at_cut < at_u ? at_cut : at_u);
        b -= SAFETY * DBL_EPSILON * (fabs(reduced) + fabs(old) + fabs(at_cut) + fabs(at_u) + s->magnitude);
        if (b > s->cutoff) {
            w->u[j] = cut;
            continue;
        }
        w->gain[j] = isnan(b) ? -INFINITY : b;
        w->cand[count++] = j;
    }
    for (int i = 1; i < count; i++) { /* by falling bounds */
        int j = w->cand[i], t = i;
        for (; t > 0 && w->gain[w->cand[t - 1]] < w->gain[j]; t--) w->cand[t] = w->cand[t - 1];
        w->cand[t] = j;
    }
    return count;
}

TREE int process(Search *s, Node node)
{
    const Problem *p = &s->p;
    Work *w = &s->w;
    int n = p->n;
    s->nodes++;
    for (int j = 0; j < n; j++) {
        w->l[j] = node.box->l[j];
        w->u[j] = node.box->u[j];
    }
    double cap = node.box->cap;
    for (int j = 0; j < n && node.after; j++)
        if (node.box->rank[j] < node.after && w->u[j] > cap) w->u[j] = cap;
    w->l[node.k] = node.l;
    w->u[node.k] = node.u;
    load_box(s, node.box);
    double bound = node.bound, constant, reduced = -INFINITY;
    int status;
    for (int pass = 0; pass < 4; pass++) {
        if (!tighten_by_sum(p, w)) return 0;
        double b = node_bound(s, &status, &constant, &reduced);
        if (status == LP_MEMORY) return -1;
        if (b > bound) bound = b;
        if (bound > s->cutoff) return 0;
        if (status != LP_OPTIMAL || reduced <= -INFINITY) break;
        if (tighten_by_cost(s, reduced) < 0.5) break;
    }
    primal_point(p, w);
    drop_rows(p, w);
    /* where the chords are worst */
    int k = -1;
    double worst = 0.0;
    for (int j = 0; j < n; j++) {
        double l = w->L[j], u = w->U[j], x = w->v[j];
        if (x <= l || x >= u || u - l <= SMALLEST_WIDTH) continue;
        double e = phi(x) - phi(l) - (phi(u) - phi(l)) * (x - l) / (u - l);
        if (e > worst) {
            worst = e;
            k = j;
        }
    }
    double value = objective(p, s->y, w->v), cut = 0.0;
    Box *box = NULL;
    if (status == LP_OPTIMAL) note_cost(s, value);
    if (k >= 0 && value - bound > s->leaf) {
        double l = w->l[k], u = w->u[k], x = w->v[k];
        double low = l + 0.1 * (u - l), high = u - 0.1 * (u - l);
        x = (1.0 - TO_MIDDLE) * x + TO_MIDDLE * 0.5 * (l + u);
        cut = (float)(x < low ? low : (x > high ? high : x));
        if (cut <= l || cut >= u) k = -1;
    } else
        k = -1;
    int many = 0, sparse = 0;
    if (k >= 0) {
        sparse = SPARSE;
        if (sparse && w->l[k] == 0.0) many = rest_children(s, reduced, cut);
        if (!(box = box_new(s, w->l, w->u))) return -1;
        box->refs = 1;
    }
    int failed = 0;
    if (k < 0) {
        if (bound < s->closed) s->closed = bound;
    } else if (!sparse || w->l[k] > 0.0) {
        Node left = {bound, box, k, box->l[k], (float)cut, 0}, right = {bound, box, k, (float)cut, box->u[k], 0};
        failed = push(s, left) < 0 || push(s, right) < 0;
    } else {
        box->cap = (float)cut;
        for (int j = 0; j < n; j++) box->rank[j] = INT16_MAX;
        for (int i = 0; i < many; i++) box->rank[w->cand[i]] = (int16_t)i;
        for (int i = 0; i < many && !failed; i++) {
            int j = w->cand[i];
            double b = w->gain[j] > bound ? w->gain[j] : bound;
            Node child = {b, box, j, (float)cut, box->u[j], i};
            failed = push(s, child) < 0;
        }
        Node rest = {bound, box, k, 0.0f, (float)cut, many};
        failed = failed || push(s, rest) < 0;
    }
    if (!failed && status == LP_OPTIMAL && value < s->column_cutoff && s->ncols < s->max_columns)
        failed = take_column(s, descend(s, 2)) < 0;
    if (box) box_drop(s, box);
    return failed ? -1 : 0;
}

/* Ends of the intervals for the largest coordinate: the root is split by which coordinate is the
 * largest and in which of these it lies, so every other one is at most its upper end and at most one
 * minus its lower end. */
static const double LARGEST[7] = {0.0, 0.25, 1.0 / 3.0, 0.4, 0.5, 0.75, 1.0};

TREE int split_root(Search *s, int part, int parts)
{
    const Problem *p = &s->p;
    Work *w = &s->w;
    int n = p->n;
    no_rows(p, w);
    for (int t = 0; t < 6; t++) {
        double a = LARGEST[t], b = LARGEST[t + 1];
        if (b * n < 1.0) continue;
        double cap = b < 1.0 - a ? b : 1.0 - a, constant;
        int status;
        for (int j = 0; j < n; j++) {
            w->l[j] = 0.0;
            w->u[j] = p->root_u[j] < b ? p->root_u[j] : b;
        }
        drop_rows(p, w);
        factor(p, w);
        double save = s->cutoff;
        s->cutoff = INFINITY;
        double reduced, all = node_bound(s, &status, &constant, &reduced);
        s->cutoff = save;
        if (status == LP_MEMORY) return -1;
        if (all == INFINITY) continue;
        /* one shared box with the cap of the others; each child changes one coordinate */
        for (int j = 0; j < n; j++)
            if (w->u[j] > cap) w->u[j] = cap;
        Box *box = box_new(s, w->l, w->u);
        if (!box) return -1;
        box->refs = 1;
        constant = set_chords(s);
        double base = lagrangian(p, w, w->c, w->pi, constant, s->magnitude);
        if (a == 0.0) { /* every coordinate is small: nothing is gained by naming the largest */
            Node all_small = {base, box, 0, box->l[0], box->u[0]};
            int failed = base <= s->cutoff && part == 0 && push(s, all_small) < 0;
            box_drop(s, box);
            if (failed) return -1;
            continue;
        }
        for (int j = 0; j < n; j++) {
            double top = p->root_u[j] < b ? p->root_u[j] : b;
            if (top < a) continue;
            double old = w->alpha[j] > 0.0 ? 0.0 : w->alpha[j] * w->u[j];
            double shift = w->alpha[j] - w->c[j]; /* minus the row prices of column j */
            double at_a = phi(a) - s->y[j] * a + shift * a,
                   at_b = phi(top) - s->y[j] * top + shift * top;
            double bound = base - old + (at_a < at_b ? at_a : at_b);
            bound -= SAFETY * DBL_EPSILON * (fabs(base) + fabs(old) + fabs(at_a) + fabs(at_b) + s->magnitude);
            if (isnan(bound)) bound = -INFINITY;
            if (bound > s->cutoff || (parts > 1 && j % parts != part)) continue;
            float fa = (float)a, ft = (float)top;
            if ((double)fa > a) fa = nextafterf(fa, -1.0f);
            if ((double)ft < top) ft = nextafterf(ft, 2.0f);
            Node child = {bound, box, j, fa, ft};
            if (push(s, child) < 0) {
                box_drop(s, box);
                return -1;
            }
        }
        box_drop(s, box);
    }
    return 0;
}

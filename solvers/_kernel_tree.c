/* What the tree of `_tree.h` asks of the kernel. */

#include "_kernel.h"

static Box *box_new(Search *s, const double *l, const double *u)
{
    int n = s->p.n, M = s->p.M;
    Box *b = malloc(sizeof(Box) + sizeof(float) * 2 * (size_t)n + sizeof(int16_t) * (size_t)(M + n));
    if (!b) return NULL;
    b->refs = 0;
    b->l = (float *)(b + 1);
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
    for (int i = 0; i < M; i++) b->basis[i] = (int16_t)s->w.basis[i];
    if (++s->boxes > s->peak_boxes) s->peak_boxes = s->boxes;
    return b;
}

void box_drop(Search *s, Box *b)
{
    if (--b->refs <= 0) {
        free(b);
        s->boxes--;
    }
}

/* The rows are given and few: none comes or goes. */
static inline void drop_rows(const Problem *p, const Work *w) { (void)p; (void)w; }

static inline int basis_size(const Problem *p, const Work *w) { (void)w; return p->M; }

static inline int solve(const Problem *p, Work *w, double start, double cutoff)
{
    return dual_simplex(p, w, start, cutoff);
}

static void no_rows(const Problem *p, Work *w)
{
    set_rows(p, w, 0);
    slack_basis(p, w);
}

static void load_box(Search *s, const Box *box)
{
    load_basis(&s->p, &s->w, box->basis);
    set_rows(&s->p, &s->w, 0);
}

#define TREE
#define SPARSE 1
#define TO_MIDDLE 0.8
#include "_tree.h"

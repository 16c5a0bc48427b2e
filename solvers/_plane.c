/* Supports of two and three symbols in a plane: the loops of `solvers.plane`.
 *
 * Every symbol is a point of the plane. A pair of them meets a line in one point, and a triple holds a
 * given point in one mixture theta; its reduced cost is H(theta) - theta.y. Loops over pairs and triples first
 * bound it from below without a logarithm, by h(t) >= 4 log 2 t (1 - t) for the binary entropy h, and look
 * closer only at what may lie below the level.
 *
 * What is called `lowest` is a proven lower bound. The coordinates come with an absolute error `blur`; a
 * mixture whose weights may therefore be wrong by E costs at least its computed value less slack(E), and
 * in any case no less than the unit vectors of its symbols.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <float.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define FOUR_LOG_2 2.772588722239781
/* Weights that may be wrong by more than this are not trusted to discard a mixture. */
#define SHARP 1e-7
/* No weight is the largest of three below one third. */
#define LARGEST_REST 0.6666668

/* Mixtures looked at closely, per symbol, after which only those near the best one are: at prices far from any
 * optimum nearly all are below zero. */
#define MANY 10
#define CLOSE 0.95

#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__linux__) && defined(__GLIBC__)
#define HOT __attribute__((target_clones("avx2,fma", "default"), optimize("no-trapping-math")))
#else
#define HOT
#endif

typedef struct {
    Py_ssize_t n;
    double level, keep; /* what is dearer than the level is of no interest; it falls to keep * (best value) */
    double lowest, floor, blur;
    double margin;      /* distance from the level within which a mixture is looked at closely: slack(SHARP) */
    double *best;       /* n: least value found with each symbol */
    int32_t *support;   /* n x 3: where it was found, -1 for no third symbol */
    long long looked;
} Found;

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

static double term(double x)
{
    return x > 0.0 ? -x * log(x) : 0.0;
}

/* Largest change of H(theta) + theta.s over three weights that are each wrong by at most E <= 0.1. */
static double slack(double error, double size)
{
    return 3.0 * error * (1.0 - log(error) + size) + 64.0 * DBL_EPSILON * (1.0 + size);
}

static void note(Found *found, double value, double error, double size, double floor, int32_t i, int32_t j, int32_t k)
{
    double low = error < 0.1 ? value - slack(error, size) : floor;
    if (low < floor) low = floor;
    if (low < found->lowest) found->lowest = low;
    found->looked++;
    if (!(error < SHARP)) return;
    int32_t members[3] = {i, j, k};
    for (int t = 0; t < 3; t++) {
        int32_t m = members[t];
        if (m < 0 || value >= found->best[m]) continue;
        found->best[m] = value;
        memcpy(found->support + 3 * m, members, sizeof members);
    }
    double keep = found->looked > MANY * found->n ? CLOSE : found->keep;
    double level = value < 0.0 ? keep * value : value;
    if (level < found->level) found->level = level;
}

/* Lower bounds of all mixtures of one symbol below a line (f_i <= 0, price y_i) with those above it. */
HOT static double bound_pairs(double f_i, double y_i, const double *f, const double *y, Py_ssize_t count, double *out)
{
    double least = INFINITY;
    for (Py_ssize_t k = 0; k < count; k++) {
        double t = -f_i / (f[k] - f_i);
        out[k] = FOUR_LOG_2 * t * (1.0 - t) - (1.0 - t) * y_i - t * y[k];
    }
    for (Py_ssize_t k = 0; k < count; k++) least = out[k] < least ? out[k] : least;
    return least;
}

/* The same for triples: i at distance r from the origin, j at (p_j, o_j) with p along the ray from i through
 * the origin and beyond, and every k on the other side of it. Negative infinity where the weights are blurred. */
HOT static double bound_triples(double r, double s_i, double p_j, double o_j, double s_j, const double *p,
                                const double *o, const double *s, Py_ssize_t count, double sharp, double largest,
                                double *out)
{
    double least = INFINITY;
    for (Py_ssize_t k = 0; k < count; k++) {
        double sum = o_j + o[k], inverse = 1.0 / sum, a = o[k] * inverse, b = o_j * inverse;
        double far = a * p_j + b * p[k] + r;
        double rest = r / far;
        double low = FOUR_LOG_2 * rest * ((1.0 - rest) + a * b) + (1.0 - rest) * s_i + rest * (a * s_j + b * s[k]);
        low = far * largest >= r ? low : INFINITY;
        out[k] = sum >= sharp ? low : -INFINITY;
    }
    for (Py_ssize_t k = 0; k < count; k++) least = out[k] < least ? out[k] : least;
    return least;
}

typedef struct {
    double *p, *o, *s;
    int32_t *index;
    Py_ssize_t count;
} Side;

typedef struct {
    Side up, down;
    double *out;
    void *memory;
} Space;

static int space_init(Space *w, Py_ssize_t n)
{
    double *at = w->memory = malloc((size_t)n * (7 * sizeof(double) + 2 * sizeof(int32_t)) + 64);
    if (!at) return -1;
    w->up.p = at;
    w->up.o = at + n;
    w->up.s = at + 2 * n;
    w->down.p = at + 3 * n;
    w->down.o = at + 4 * n;
    w->down.s = at + 5 * n;
    w->out = at + 6 * n;
    w->up.index = (int32_t *)(at + 7 * n);
    w->down.index = w->up.index + n;
    return 0;
}

static void side_add(Side *side, double p, double o, double s, int32_t j)
{
    side->p[side->count] = p;
    side->o[side->count] = o > 0.0 ? o : 0.0;
    side->s[side->count] = s;
    side->index[side->count++] = j;
}

/* All triples with the origin in which i has the largest weight. */
static void triples_of(Found *found, Space *w, const double *f, const double *g, const double *s, double offset,
                       double size, double reach, int32_t i)
{
    double r = hypot(f[i], g[i]), blur = found->blur, s_i = s[i];
    if (r <= 1e3 * blur) { /* the point itself: nothing is cheaper than its unit vector by more than the noise */
        double floor = found->floor, low = s_i - offset;
        if (low < found->level + found->margin && floor < found->lowest) found->lowest = floor;
        return;
    }
    double e = -f[i] / r, h = -g[i] / r, most = 0.0;
    w->up.count = w->down.count = 0;
    for (Py_ssize_t j = 0; j < found->n; j++) {
        if (j == i) continue;
        double p = f[j] * e + g[j] * h, o = g[j] * e - f[j] * h;
        if (p > most) most = p;
        if (o >= -blur) side_add(&w->up, p, o, s[j], (int32_t)j);
        if (o <= blur) side_add(&w->down, p, -o, s[j], (int32_t)j);
    }
    if (most <= 0.0) return;
    /* concave in the weight of the others, so least at an end; with half or more for them H >= log 2 */
    double rest = r / (r + most + 4.0 * blur);
    double limit = found->level + found->margin + offset, half = 0.25 * FOUR_LOG_2 + s_i / 3.0;
    double ends = rest < 0.5 ? term(rest) + term(1.0 - rest) + (1.0 - rest) * s_i : half;
    if (ends > limit && half > limit) return;
    double largest = half > limit ? 0.5000001 : LARGEST_REST;
    double sharp = 32.0 * blur * reach / (SHARP * r);
    for (Py_ssize_t u = 0; u < w->up.count; u++) {
        double p_j = w->up.p[u], o_j = w->up.o[u], s_j = w->up.s[u];
        limit = found->level + found->margin + offset;
        if (bound_triples(r, s_i, p_j, o_j, s_j, w->down.p, w->down.o, w->down.s, w->down.count, sharp, largest,
                          w->out) > limit)
            continue;
        for (Py_ssize_t k = 0; k < w->down.count; k++) {
            if (w->out[k] > limit || w->down.index[k] == w->up.index[u]) continue;
            double s_k = w->down.s[k], sum = o_j + w->down.o[k], floor = s_i < s_j ? s_i : s_j;
            floor = (floor < s_k ? floor : s_k) - offset;
            double error = INFINITY, value = floor;
            if (sum > 0.0) {
                double a = w->down.o[k] / sum, p = a * p_j + (1.0 - a) * w->down.p[k];
                double part = r / (p + r), x = part * a, z = part * (1.0 - a), wrong = 4.0 * blur / sum;
                double wrong_p = wrong * (fabs(p_j) + fabs(w->down.p[k])) + 4.0 * blur;
                if (p + wrong_p < 0.49 * r) continue; /* the others weigh more than two thirds */
                if (p > 2.0 * wrong_p) {
                    error = wrong + 2.0 * part * wrong_p / (p + r);
                    value = term(1.0 - part) + term(x) + term(z) + (1.0 - part) * s_i + x * s_j + z * s_k - offset;
                }
            }
            note(found, value, error, size, floor, i, w->up.index[u], w->down.index[k]);
        }
    }
}

/* A contiguous buffer of `count` items of the given format. */
static int view_of(PyObject *source, Py_buffer *view, Py_ssize_t count, const char *format, int writable, const char *name)
{
    if (PyObject_GetBuffer(source, view, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT | (writable ? PyBUF_WRITABLE : 0)) < 0)
        return -1;
    if (!view->format || strcmp(view->format, format) != 0 || view->len != count * view->itemsize) {
        PyErr_Format(PyExc_ValueError, "%s must be a contiguous array of %zd items of format %s", name, count, format);
        PyBuffer_Release(view);
        return -1;
    }
    return 0;
}

enum { VIEWS = 6 };

static void release(Py_buffer *views, int count)
{
    for (int i = 0; i < count; i++) PyBuffer_Release(&views[i]);
}

/* triples(f, g, s, candidates, best, support, offset, size, reach, blur, level, keep, lowest, floor, first, seconds)
 * -> (next candidate, level, lowest, looked at). */
static PyObject *plane_triples(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *in[VIEWS];
    double offset, size, reach, seconds;
    Py_ssize_t first;
    Found found = {0};
    if (!PyArg_ParseTuple(args, "OOOOOOddddddddnd", &in[0], &in[1], &in[2], &in[3], &in[4], &in[5], &offset, &size,
                          &reach, &found.blur, &found.level, &found.keep, &found.lowest, &found.floor, &first,
                          &seconds))
        return NULL;
    Py_ssize_t n = PyObject_Length(in[0]), candidates = PyObject_Length(in[3]);
    if (n < 0 || candidates < 0) return NULL;
    Py_ssize_t counts[VIEWS] = {n, n, n, candidates, n, 3 * n};
    const char *names[VIEWS] = {"f", "g", "s", "candidates", "best", "support"};
    Py_buffer views[VIEWS];
    for (int i = 0; i < VIEWS; i++)
        if (view_of(in[i], &views[i], counts[i], i == 3 || i == 5 ? "i" : "d", i > 3, names[i]) < 0) {
            release(views, i);
            return NULL;
        }
    found.n = n;
    found.margin = slack(SHARP, size);
    found.best = views[4].buf;
    found.support = views[5].buf;
    const int32_t *which = views[3].buf;
    Py_ssize_t at = first < 0 ? 0 : first;
    Space space;
    int failed = space_init(&space, n + 1) < 0;
    for (Py_ssize_t c = 0; c < candidates && !failed; c++) failed = which[c] < 0 || which[c] >= n;
    if (!failed) {
        Py_BEGIN_ALLOW_THREADS
        double end = now_seconds() + seconds;
        for (int any = 0; at < candidates && (!any || now_seconds() <= end); any = 1)
            triples_of(&found, &space, views[0].buf, views[1].buf, views[2].buf, offset, size, reach, which[at++]);
        Py_END_ALLOW_THREADS
    }
    free(space.memory);
    release(views, VIEWS);
    if (failed) {
        PyErr_SetString(PyExc_ValueError, "candidates must be indices of points, and memory enough for them");
        return NULL;
    }
    return Py_BuildValue("nddL", at, found.level, found.lowest, found.looked);
}

/* pairs(lines, y, best, support, line, blur, size, level, keep, lowest, first, seconds)
 * -> (next symbol, level, lowest, looked at). Each row of `lines` is a line's function at the symbols, and a mixture
 * counts where no other one is above the blur. */
static PyObject *plane_pairs(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *in[4];
    double seconds, size, outside;
    Py_ssize_t line, first;
    Found found = {0};
    if (!PyArg_ParseTuple(args, "OOOOndddddddnd", &in[0], &in[1], &in[2], &in[3], &line, &found.blur, &outside, &size,
                          &found.level, &found.keep, &found.lowest, &found.floor, &first, &seconds))
        return NULL;
    Py_ssize_t lines = PyObject_Length(in[0]), n = PyObject_Length(in[1]);
    if (lines < 0 || n < 0) return NULL;
    if (line < 0 || line >= lines || first < 0) {
        PyErr_SetString(PyExc_ValueError, "line and first must be indices");
        return NULL;
    }
    Py_ssize_t counts[4] = {lines * n, n, n, 3 * n};
    const char *names[4] = {"lines", "y", "best", "support"};
    Py_buffer views[4];
    for (int i = 0; i < 4; i++)
        if (view_of(in[i], &views[i], counts[i], i == 3 ? "i" : "d", i > 1, names[i]) < 0) {
            release(views, i);
            return NULL;
        }
    found.n = n;
    found.margin = slack(SHARP, size);
    found.best = views[2].buf;
    found.support = views[3].buf;
    const double *all = views[0].buf, *f = all + line * n, *y = views[1].buf;
    Space space;
    Py_ssize_t i = first;
    int failed = space_init(&space, n + 1) < 0;
    if (!failed) {
        Py_BEGIN_ALLOW_THREADS
        double end = now_seconds() + seconds;
        Side *up = &space.up;
        up->count = 0;
        for (Py_ssize_t j = 0; j < n; j++)
            if (f[j] >= -found.blur) side_add(up, f[j] > 0.0 ? f[j] : 0.0, 0.0, y[j], (int32_t)j);
        for (int any = 0; i < n && (!any || now_seconds() <= end); any = 1, i++) {
            if (f[i] > found.blur) continue;
            double f_i = f[i] < 0.0 ? f[i] : 0.0, limit = found.level + found.margin;
            if (bound_pairs(f_i, y[i], up->p, up->s, up->count, space.out) > limit) continue;
            for (Py_ssize_t k = 0; k < up->count; k++) {
                if (space.out[k] > limit || up->index[k] == i) continue;
                double width = up->p[k] - f_i, t = -f_i / width, error = 4.0 * found.blur / width;
                int32_t j = up->index[k];
                int inside = 1;
                if (!(width > 0.0)) t = 0.5; /* both on the line: the floor is all that is known */
                for (Py_ssize_t m = 0; m < lines && inside; m++) {
                    const double *other = all + m * n;
                    inside = m == line || (1.0 - t) * other[i] + t * other[j] <= outside + error * fabs(other[i] - other[j]);
                }
                if (!inside) continue;
                double floor = y[i] > y[j] ? -y[i] : -y[j];
                note(&found, term(t) + term(1.0 - t) - (1.0 - t) * y[i] - t * y[j], error, size, floor, (int32_t)i, j, -1);
            }
        }
        Py_END_ALLOW_THREADS
    }
    free(space.memory);
    release(views, 4);
    if (failed) return PyErr_NoMemory();
    return Py_BuildValue("nddL", i, found.level, found.lowest, found.looked);
}

static PyMethodDef methods[] = {
    {"triples", plane_triples, METH_VARARGS, "Price the triples around one point."},
    {"pairs", plane_pairs, METH_VARARGS, "Price the pairs across one line."},
    {NULL, NULL, 0, NULL}};

static struct PyModuleDef plane = {
    PyModuleDef_HEAD_INIT,
    .m_name = "solvers._plane",
    .m_doc = "Compiled loops of `solvers.plane`.",
    .m_methods = methods,
};

PyMODINIT_FUNC PyInit__plane(void)
{
    return PyModule_Create(&plane);
}

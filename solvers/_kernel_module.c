/* The Python type: buffers in, bytes out, one thread at a time. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <time.h>

#include "_kernel.h"

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

typedef struct {
    PyObject_HEAD
    Search search;
    int busy;
} SearchObject;

static void Search_dealloc(SearchObject *self)
{
    Search *s = &self->search;
    clear_tree(s);
    free(s->heap);
    free(s->indptr);
    free(s->indices);
    free(s->values);
    free(s->costs);
    free(s->y);
    free(s->p.A);
    free(s->p.columns);
    free(s->p.out_lo);
    free(s->p.out_hi);
    free(s->p.in_lo);
    free(s->p.in_hi);
    free(s->p.root_u);
    free(s->p.row_weight);
    work_free(&s->w);
    PyTypeObject *type = Py_TYPE(self);
    type->tp_free((PyObject *)self);
    Py_DECREF(type);
}

/* A search works for one thread at a time; after Ctrl-C another one may still be at work in it. */
static int enter(SearchObject *self)
{
    if (self->busy) {
        PyErr_SetString(PyExc_RuntimeError,
                        "this search is still at work in another thread; wait for it or make another one");
        return -1;
    }
    self->busy = 1;
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
    else if (!(out = malloc(sizeof(double) * (size_t)(count > 0 ? count : 1))))
        PyErr_NoMemory();
    else
        memcpy(out, view.buf, (size_t)view.len);
    PyBuffer_Release(&view);
    return out;
}

static PyObject *Search_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"matrix", "outer_lower", "outer_upper", "inner_lower", "inner_upper",
                            "upper",  "n",           NULL};
    PyObject *A, *ol, *ou, *il, *iu, *up;
    int n;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OOOOOOi", names, &A, &ol, &ou, &il, &iu, &up, &n))
        return NULL;
    Py_ssize_t M = PyObject_Length(ol), N = PyObject_Length(up);
    if (M < 1 || N < n || n < 1 || M + N > INT16_MAX) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_ValueError,
                            "wrong sizes: at least one row and one coordinate, at most 32767 together");
        return NULL;
    }
    SearchObject *self = (SearchObject *)type->tp_alloc(type, 0);
    if (!self) return NULL;
    Search *s = &self->search;
    Problem *p = &s->p;
    p->n = n;
    p->N = (int)N;
    p->M = (int)M;
    if (!(p->A = copy_doubles(A, M * N, "matrix")) || !(p->out_lo = copy_doubles(ol, M, "outer_lower")) ||
        !(p->out_hi = copy_doubles(ou, M, "outer_upper")) ||
        !(p->in_lo = copy_doubles(il, M, "inner_lower")) ||
        !(p->in_hi = copy_doubles(iu, M, "inner_upper")) || !(p->root_u = copy_doubles(up, N, "upper"))) {
        Py_DECREF(self);
        return NULL;
    }
    s->y = calloc((size_t)n, sizeof(double));
    p->row_weight = calloc((size_t)M, sizeof(double));
    p->columns = malloc(sizeof(double) * (size_t)M * (size_t)N);
    if (!s->y || !p->row_weight || !p->columns || work_init(&s->w, p) < 0) {
        Py_DECREF(self);
        return PyErr_NoMemory();
    }
    for (Py_ssize_t j = 0; j < N; j++)
        for (Py_ssize_t k = 0; k < M; k++) p->columns[j * M + k] = p->A[k * N + j];
    weigh_rows(p);
    slack_basis(p, &s->w);
    return (PyObject *)self;
}

static PyObject *Search_start(SearchObject *self, PyObject *args, PyObject *kwargs)
{
    Search *s = &self->search;
    static char *names[] = {"y",           "cutoff",    "tolerance", "slack", "column_cutoff",
                            "max_columns", "box_limit", "part",      "parts", NULL};
    PyObject *y;
    double cutoff, column_cutoff, tolerance, slack;
    int max_columns, part = 0, parts = 1;
    long long box_limit;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OddddiL|ii", names, &y, &cutoff, &tolerance, &slack,
                                     &column_cutoff, &max_columns, &box_limit, &part, &parts))
        return NULL;
    double *copy = copy_doubles(y, s->p.n, "y");
    if (!copy) return NULL;
    if (enter(self) < 0) {
        free(copy);
        return NULL;
    }
    free(s->y);
    s->y = copy;
    double top = 0.0;
    for (int j = 0; j < s->p.n; j++)
        if (fabs(copy[j]) > top) top = fabs(copy[j]);
    s->magnitude = top + 100.0; /* |log u| of a positive float32 stays below 104 */
    s->cutoff = cutoff;
    s->column_cutoff = column_cutoff;
    s->max_columns = max_columns;
    s->box_limit = box_limit;
    s->tolerance = tolerance;
    s->slack = slack;
    s->leaf = 0.1 * tolerance;
    s->best = s->closed = INFINITY;
    s->nodes = 0;
    s->ncols = s->nnz = 0;
    s->w.pivots = s->w.lps = 0;
    clear_tree(s);
    s->peak_boxes = s->boxes;
    int failed;
    Py_BEGIN_ALLOW_THREADS failed = split_root(s, part, parts);
    slack_basis(&s->p, &s->w);
    Py_END_ALLOW_THREADS self->busy = 0;
    if (failed) return PyErr_NoMemory();
    Py_RETURN_NONE;
}

enum { RUN_DONE, RUN_PAUSED, RUN_COLUMNS, RUN_MEMORY };

static PyObject *Search_run(SearchObject *self, PyObject *args)
{
    Search *s = &self->search;
    long long nodes;
    double seconds;
    int columns;
    if (!PyArg_ParseTuple(args, "Ldi", &nodes, &seconds, &columns)) return NULL;
    int outcome = RUN_DONE, failed = 0;
    if (enter(self) < 0) return NULL;
    /* Open nodes count as boxes by the memory that they take, and as much again for the heap to grow. */
    double share = 2.0 * sizeof(Node) / (sizeof(Box) + 10.0 * s->p.n + 2.0 * s->p.M);
    Py_BEGIN_ALLOW_THREADS double end = now_seconds() + seconds;
    long long first = s->nodes;
    while (s->size > 0) {
        if (s->ncols >= columns) {
            outcome = RUN_COLUMNS;
            break;
        }
        if ((double)s->boxes + share * s->size > (double)s->box_limit) {
            outcome = RUN_MEMORY;
            break;
        }
        if (s->nodes - first >= nodes || ((s->nodes & 15) == 0 && now_seconds() > end)) {
            outcome = RUN_PAUSED;
            break;
        }
        Node node = pop(s);
        if (node.bound > s->cutoff) {
            box_drop(s, node.box);
            continue;
        } /* the cutoff has moved */
        failed = process(s, node);
        box_drop(s, node.box);
        if (failed) break;
    }
    Py_END_ALLOW_THREADS self->busy = 0;
    if (failed) return PyErr_NoMemory();
    return PyLong_FromLong(outcome);
}

/* Local searches from w e_j + (1 - w) center for j = first, first + step, ..., one at least, until the time is
 * over; returns the next j. They go on from the basis that the last one left, across calls, too. */
static PyObject *Search_descend(SearchObject *self, PyObject *args)
{
    Search *s = &self->search;
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
    if (enter(self) < 0) {
        free(center);
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS double end = now_seconds() + seconds;
    for (; j < n && !failed && (j == first || now_seconds() <= end); j += step) {
        if (s->ncols >= s->max_columns) {
            j = n;
            break;
        }
        for (int i = 0; i < n; i++) s->w.v[i] = (1.0 - weight) * center[i];
        s->w.v[j] += weight;
        failed = take_column(s, descend(s, 0)) < 0;
    }
    Py_END_ALLOW_THREADS self->busy = 0;
    free(center);
    if (failed) return PyErr_NoMemory();
    return PyLong_FromLong(j);
}

/* Walks from vertex to vertex, beginning at the points of a matrix (k, n), first, first + step, ..., one at least,
 * until the time is over; returns the next one. */
static PyObject *Search_walk(SearchObject *self, PyObject *args)
{
    Search *s = &self->search;
    PyObject *source;
    int count, first, step, failed = 0;
    double seconds;
    if (!PyArg_ParseTuple(args, "Oiiid", &source, &count, &first, &step, &seconds)) return NULL;
    if (count < 0 || first < 0 || step < 1) {
        PyErr_SetString(PyExc_ValueError, "count and first must be at least 0 and step at least 1");
        return NULL;
    }
    int n = s->p.n, k = first;
    double *points = copy_doubles(source, (Py_ssize_t)count * n, "points");
    if (!points) return NULL;
    if (enter(self) < 0) {
        free(points);
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS double end = now_seconds() + seconds;
    for (; k < count && !failed && (k == first || now_seconds() <= end); k += step) {
        if (s->ncols >= s->max_columns) {
            k = count;
            break;
        }
        memcpy(s->w.v, points + (size_t)k * (size_t)n, sizeof(double) * (size_t)n);
        double cost = descend(s, 2);
        if (cost < INFINITY) failed = take_column(s, walk(s)) < 0;
    }
    Py_END_ALLOW_THREADS self->busy = 0;
    free(points);
    if (failed) return PyErr_NoMemory();
    return PyLong_FromLong(k);
}

/* Safe upper bounds of the coordinates first, first + 1, ... over the outer set, by one linear program each,
 * one at least, until the time is over: (next coordinate, all bounds as known so far). */
static PyObject *Search_tighten(SearchObject *self, PyObject *args)
{
    Search *s = &self->search;
    int first, j;
    double seconds;
    if (!PyArg_ParseTuple(args, "id", &first, &seconds)) return NULL;
    if (first < 0) {
        PyErr_SetString(PyExc_ValueError, "first must be at least 0");
        return NULL;
    }
    if (enter(self) < 0) return NULL;
    const Problem *p = &s->p;
    Work *w = &s->w;
    PyObject *out = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)sizeof(double) * p->N);
    if (!out) {
        self->busy = 0;
        return NULL;
    }
    double *top = (double *)PyBytes_AS_STRING(out);
    Py_BEGIN_ALLOW_THREADS double end = now_seconds() + seconds;
    set_rows(p, w, 0);
    for (int i = 0; i < p->N; i++) {
        w->L[i] = 0.0;
        w->U[i] = p->root_u[i];
        w->c[i] = 0.0;
    }
    if (first == 0) slack_basis(p, w);
    for (j = first; j < p->n && (j == first || now_seconds() <= end); j++) {
        w->c[j] = -1.0;
        recompute(p, w);
        dual_simplex(p, w, -INFINITY, INFINITY);
        multipliers(p, w);
        double b = -lagrangian(p, w, w->c, w->pi, 0.0, 1.0);
        if (b < p->root_u[j]) p->root_u[j] = b > 0.0 ? b : 0.0;
        w->U[j] = p->root_u[j]; /* at once, so that pauses change nothing */
        w->c[j] = 0.0;
    }
    memcpy(top, p->root_u, sizeof(double) * (size_t)p->N);
    Py_END_ALLOW_THREADS self->busy = 0;
    return Py_BuildValue("iN", j, out);
}

/* min cost.x over the outer set: (status, safe bound, point). */
static PyObject *Search_linear(SearchObject *self, PyObject *args)
{
    Search *s = &self->search;
    PyObject *cost;
    if (!PyArg_ParseTuple(args, "O", &cost)) return NULL;
    const Problem *p = &s->p;
    Work *w = &s->w;
    double *c = copy_doubles(cost, p->n, "cost");
    if (!c) return NULL;
    if (enter(self) < 0) {
        free(c);
        return NULL;
    }
    double magnitude = 0.0;
    set_rows(p, w, 0);
    for (int j = 0; j < p->N; j++) {
        w->L[j] = 0.0;
        w->U[j] = p->root_u[j];
        w->c[j] = j < p->n ? c[j] : 0.0;
        if (fabs(w->c[j]) > magnitude) magnitude = fabs(w->c[j]);
    }
    free(c);
    slack_basis(p, w);
    recompute(p, w);
    int status = dual_simplex(p, w, -INFINITY, INFINITY);
    double bound;
    if (status == LP_INFEASIBLE) {
        for (int k = 0; k < p->M; k++) w->pi[k] = w->work[k];
        int proven = proves_empty(p, w, w->pi);
        for (int k = 0; k < p->M && !proven; k++) w->pi[k] = -w->pi[k];
        if (!proven) proven = proves_empty(p, w, w->pi);
        bound = proven ? INFINITY : -INFINITY;
    } else {
        multipliers(p, w);
        bound = lagrangian(p, w, w->c, w->pi, 0.0, magnitude);
    }
    primal_point(p, w);
    self->busy = 0;
    PyObject *point = PyBytes_FromStringAndSize((char *)w->v, (Py_ssize_t)sizeof(double) * p->n);
    if (!point) return NULL;
    return Py_BuildValue("idN", status, bound, point);
}

static PyObject *Search_columns(SearchObject *self, PyObject *Py_UNUSED(ignored))
{
    Search *s = &self->search;
    int zero = 0;
    if (enter(self) < 0) return NULL;
    self->busy = 0;
    return Py_BuildValue("iy#y#y#y#", s->ncols, s->ncols ? (char *)s->indptr : (char *)&zero,
                         (Py_ssize_t)(sizeof(int) * (size_t)(s->ncols + 1)),
                         s->ncols ? (char *)s->indices : "", (Py_ssize_t)(sizeof(int) * (size_t)s->nnz),
                         s->ncols ? (char *)s->values : "", (Py_ssize_t)(sizeof(double) * (size_t)s->nnz),
                         s->ncols ? (char *)s->costs : "", (Py_ssize_t)(sizeof(double) * (size_t)s->ncols));
}

static PyObject *Search_state(SearchObject *self, PyObject *Py_UNUSED(ignored))
{
    Search *s = &self->search;
    if (enter(self) < 0) return NULL;
    self->busy = 0;
    double open = s->size ? s->heap[0].bound : INFINITY;
    double bound = open < s->closed ? open : s->closed;
    if (s->cutoff < bound) bound = s->cutoff; /* pruned nodes are only known to lie above the cutoff */
    return Py_BuildValue("diiLLLL", bound, s->size, s->ncols, s->nodes, s->w.lps, s->w.pivots, s->peak_boxes);
}

static PyMethodDef Search_methods[] = {
    {"start", (PyCFunction)(void (*)(void))Search_start, METH_VARARGS | METH_KEYWORDS,
     "Begin a tree for the prices y."},
    {"run", (PyCFunction)Search_run, METH_VARARGS,
     "Work on the tree: run(nodes, seconds, columns) -> outcome."},
    {"descend", (PyCFunction)Search_descend, METH_VARARGS,
     "Local searches from mixtures of unit vectors and a center: descend(center, weight, first, step, "
     "seconds) -> next."},
    {"walk", (PyCFunction)Search_walk, METH_VARARGS,
     "Walks from vertex to vertex: walk(points, count, first, step, seconds) -> next."},
    {"tighten", (PyCFunction)Search_tighten, METH_VARARGS,
     "Upper bounds of the columns by linear programs: tighten(first, seconds) -> (next, bounds as bytes)."},
    {"linear", (PyCFunction)Search_linear, METH_VARARGS,
     "Minimum of a linear function: (status, bound, point)."},
    {"columns", (PyCFunction)Search_columns, METH_NOARGS,
     "(count, indptr, indices, values, costs) as bytes."},
    {"state", (PyCFunction)Search_state, METH_NOARGS,
     "(bound, open, columns, nodes, lps, pivots, peak boxes)."},
    {NULL, NULL, 0, NULL}};

static PyType_Slot Search_slots[] = {
    {Py_tp_new, Search_new},
    {Py_tp_dealloc, Search_dealloc},
    {Py_tp_methods, Search_methods},
    {Py_tp_doc, "Branch and bound for a separable concave function over a polytope in the simplex."},
    {0, NULL}};

static PyType_Spec Search_spec = {"solvers._kernel.Search", sizeof(SearchObject), 0, Py_TPFLAGS_DEFAULT,
                                  Search_slots};

static int kernel_exec(PyObject *module)
{
    PyObject *type = PyType_FromModuleAndSpec(module, &Search_spec, NULL);
    if (!type) return -1;
    int failed = PyModule_AddObjectRef(module, "Search", type);
    Py_DECREF(type);
    return failed;
}

static PyModuleDef_Slot kernel_slots[] = {{Py_mod_exec, kernel_exec}, {0, NULL}};
static struct PyModuleDef kernel = {
    PyModuleDef_HEAD_INIT,
    .m_name = "solvers._kernel",
    .m_doc = "Compiled kernel of `solvers.concave`.",
    .m_slots = kernel_slots,
};

PyMODINIT_FUNC PyInit__kernel(void)
{
    return PyModuleDef_Init(&kernel);
}

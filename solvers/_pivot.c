/* The Python module: points from bases, twins merged, rows in order. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <time.h>

#include "_pivot.h"

static int by_key(const void *a, const void *b)
{
    double x = (*(const Point *const *)a)->key, y = (*(const Point *const *)b)->key;
    return (x > y) - (x < y);
}

/* Lexicographic order of the dense rows. */
static int by_row(const void *a, const void *b)
{
    const Point *x = *(const Point *const *)a, *y = *(const Point *const *)b;
    for (int i = 0; i < x->count && i < y->count; i++) {
        if (x->column[i] != y->column[i])
            return x->column[i] < y->column[i] ? 1 : -1;
        if (x->value[i] != y->value[i])
            return x->value[i] > y->value[i] ? 1 : -1;
    }
    return x->count - y->count;
}

static int close_by(const Point *x, const Point *y, double tolerance)
{
    int i = 0, j = 0;
    while (i < x->count || j < y->count) {
        double difference;
        if (j == y->count || (i < x->count && x->column[i] < y->column[j]))
            difference = x->value[i++];
        else if (i == x->count || y->column[j] < x->column[i])
            difference = y->value[j++];
        else
            difference = x->value[i++] - y->value[j++];
        if (fabs(difference) > tolerance)
            return 0;
    }
    return 1;
}

/* Mark points that repeat another; returns the number of different ones, their order in `order`. */
static size_t sort_points(Walk *w, double tolerance, Point **order)
{
    size_t shared = 0, kept = 0;
    for (size_t i = 0; i < w->points; i++) {
        Point *point = w->point + i;
        point->column = w->column + point->start;
        point->value = w->value + point->start;
        if (!point->shared)
            continue;
        for (int e = 0; e < point->count; e++)
            point->key += point->value[e] * pivot_unit((uint64_t)point->column[e]);
        order[shared++] = point;
    }
    qsort(order, shared, sizeof *order, by_key);
    double window = 2.0 * w->basis.capacity * tolerance; /* keys of close points differ by less */
    for (size_t i = 0; i < shared; i++) {
        Point *kept_point = order[i];
        if (kept_point->twin)
            continue;
        for (size_t j = i + 1; j < shared && order[j]->key - kept_point->key <= window; j++)
            if (!order[j]->twin && close_by(kept_point, order[j], tolerance)) {
                order[j]->twin = 1;
                kept_point->degenerate |= order[j]->degenerate;
                if (order[j]->count < kept_point->count) { /* the smaller support is the true one */
                    kept_point->column = order[j]->column;
                    kept_point->value = order[j]->value;
                    kept_point->count = order[j]->count;
                }
            }
    }
    for (size_t i = 0; i < w->points; i++)
        if (!w->point[i].twin)
            order[kept++] = w->point + i;
    qsort(order, kept, sizeof *order, by_row);
    return kept;
}

static PyObject *pack(Walk *w, int status, Point **order, size_t kept, int wanted)
{
    size_t degenerate = 0, *sizes = calloc((size_t)w->basis.capacity + 1, sizeof(size_t));
    PyObject *points = NULL, *histogram = NULL, *out = NULL;
    if (!sizes)
        return PyErr_NoMemory();
    size_t n = (size_t)w->problem.n, bytes = wanted ? kept * n * sizeof(double) : 0;
    points = PyByteArray_FromStringAndSize(NULL, (Py_ssize_t)bytes);
    histogram = PyList_New(w->basis.capacity + 1);
    if (!points || !histogram)
        goto end;
    double *dense = (double *)PyByteArray_AS_STRING(points);
    memset(dense, 0, bytes);
    for (size_t i = 0; i < kept; i++) {
        sizes[order[i]->count]++;
        degenerate += order[i]->degenerate;
        for (int e = 0; wanted && e < order[i]->count; e++)
            dense[i * n + (size_t)order[i]->column[e]] = order[i]->value[e];
    }
    for (int s = 0; s <= w->basis.capacity; s++) {
        PyObject *size = PyLong_FromSize_t(sizes[s]);
        if (!size)
            goto end;
        PyList_SET_ITEM(histogram, s, size);
    }
    out = Py_BuildValue("iOOnnn", status, points, histogram, (Py_ssize_t)w->count, (Py_ssize_t)degenerate,
                        (Py_ssize_t)w->failures);
end:
    free(sizes);
    Py_XDECREF(points);
    Py_XDECREF(histogram);
    return out;
}

typedef struct {
    PyThreadState *state;
    double end; /* on the clock of now() */
    int late;
} Pause;

static double now(void)
{
    struct timespec t;
    timespec_get(&t, TIME_UTC);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Called without the interpreter's lock: looks at the clock, and takes the lock to look at pending signals. */
static int pause_walk(void *argument)
{
    Pause *p = argument;
    p->late = now() > p->end;
    if (p->late)
        return 1;
    PyEval_RestoreThread(p->state);
    int stopped = PyErr_CheckSignals();
    p->state = PyEval_SaveThread();
    return stopped;
}

static PyObject *run(Walk *w, Py_ssize_t m, Py_ssize_t n, const double *rows, const double *magnitude,
                     const double *lower, const double *upper, double tolerance, int wanted, double seconds)
{
    Point **order = NULL;
    size_t kept = 0;
    Pause pause = {PyEval_SaveThread(), now() + seconds, 0};
    int status = pivot_problem_init(&w->problem, m, n, rows, magnitude, lower, upper) ? NO_MEMORY : DONE;
    if (status == DONE)
        status = pivot_walk(w, pause_walk, &pause);
    status = status == STOPPED && pause.late ? LIMIT : status;
    if (status == DONE || status == FAILED || (status == LIMIT && !wanted)) {
        order = malloc(sizeof(Point *) * (w->points + 1));
        if (order)
            kept = sort_points(w, tolerance, order);
        else
            status = NO_MEMORY;
    }
    PyEval_RestoreThread(pause.state);
    PyObject *out = NULL;
    if (status == NO_MEMORY)
        PyErr_NoMemory();
    else if (status != STOPPED) /* a signal handler has raised */
        out = pack(w, status, order, kept, wanted);
    free(order);
    pivot_walk_free(w);
    return out;
}

static PyObject *enumerate_vertices(PyObject *self, PyObject *args)
{
    Py_buffer rows, magnitude, lower, upper;
    Py_ssize_t n, most_bases, most_points;
    Walk w;
    double tolerance, seconds;
    int wanted;
    (void)self;
    if (!PyArg_ParseTuple(args, "y*y*y*y*nnndpd", &rows, &magnitude, &lower, &upper, &n, &most_bases, &most_points, &tolerance,
                          &wanted, &seconds))
        return NULL;
    PyObject *out = NULL;
    Py_ssize_t d = (Py_ssize_t)sizeof(double), m = lower.len / d;
    if (n < 1 || n > INT32_MAX - 1 || m > INT32_MAX / 4 || upper.len != lower.len || rows.len != m * n * d ||
        magnitude.len != rows.len ||
        most_bases < 1 || most_points < 1)
        PyErr_SetString(PyExc_ValueError, "rows, magnitude, lower, upper must be float64 of shapes (m, n), (m, n), (m,), (m,), and limits positive");
    else {
        memset(&w, 0, sizeof w);
        w.most_bases = (size_t)most_bases;
        w.most_points = (size_t)most_points;
        out = run(&w, m, n, rows.buf, magnitude.buf, lower.buf, upper.buf, tolerance, wanted, seconds);
    }
    PyBuffer_Release(&rows);
    PyBuffer_Release(&magnitude);
    PyBuffer_Release(&lower);
    PyBuffer_Release(&upper);
    return out;
}

PyDoc_STRVAR(enumerate_doc,
"enumerate_vertices(rows, magnitude, lower, upper, n, most_bases, most_points, tolerance, wanted, seconds, /)\n--\n\n"
"Walk over all bases of {v >= 0, sum v = 1, lower <= rows v <= upper}; C-contiguous float64 buffers.\n"
"`magnitude` is the size of the terms of which each entry is a sum, |rows| where they are exact.\n\n"
"Returns (status, points, sizes, bases, degenerate, failures). Status: 0 done; 1 empty; 2 stopped because\n"
"there are more bases or points than allowed, or the seconds are over (then no points, and sizes only of the bases visited if not\n"
"`wanted`); 3 some decisions contradict each other.\n"
"Points: the rows of the vertices in lexicographic order, as float64 bytes (none unless `wanted`), those\n"
"closer than `tolerance` in every entry merged. sizes[k]: how many have k positive entries. Then the number\n"
"of bases found, of degenerate vertices and of contradictions.");

static PyMethodDef methods[] = {
    {"enumerate_vertices", enumerate_vertices, METH_VARARGS, enumerate_doc},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef_Slot slots[] = {{0, NULL}};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "_pivot", "Vertex enumeration by pivoting.", 0, methods, slots, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__pivot(void) { return PyModuleDef_Init(&module); }

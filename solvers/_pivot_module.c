/* The module `solvers._pivot`: `enumerate_vertices` takes the rows and bounds as buffers of
 * float64, and returns all vertices.
 *
 * Steps: the shapes are checked (`fits`); without the interpreter's lock the rows are scaled
 * (`pivot_problem_init`), a first basis is found (`pivot_find_start`), the bases are walked
 * (`pivot_walk`) and their vertices merged (`pivot_sort_points`), while `pause_walk` looks at the
 * clock and at pending signals; then the vertices become dense rows (`pack`). For example, v_0 <=
 * 0.5 on two columns has the vertices (0, 1) and (0.5, 0.5).
 */

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "_clock.h"
#include "_pivot.h"

/* The arguments of `enumerate_vertices` beside the limits. */
typedef struct {
    Py_ssize_t m, n;         /* rows, columns */
    const double *rows;      /* m x n */
    const double *magnitude; /* m x n: size of the terms of which each entry is a sum */
    const double *lower;     /* m */
    const double *upper;     /* m */
    double tolerance;        /* vertices closer than this in every entry are one */
    int wanted;              /* whether the vertices are to be returned, or only counted */
    double seconds;
} Request;

/* What the walk needs to look at the clock and at pending signals. */
typedef struct {
    PyThreadState *state;
    double end; /* on now_seconds() */
    int late;
} Pause;

/* Called without the interpreter's lock: looks at the clock, and takes the lock to look at pending
 * signals. */
static int pause_walk(void *argument)
{
    Pause *pause = argument;
    pause->late = now_seconds() > pause->end;
    if (pause->late)
        return 1;
    PyEval_RestoreThread(pause->state);
    int stopped = PyErr_CheckSignals();
    pause->state = PyEval_SaveThread();
    return stopped;
}

/* The vertices as dense rows; NULL with an exception. */
static PyObject *dense_points(const Walk *w, Point *const *order, size_t count)
{
    size_t n = (size_t)w->problem.n;
    size_t bytes = count * n * sizeof(double);
    PyObject *points = PyByteArray_FromStringAndSize(NULL, (Py_ssize_t)bytes);
    if (!points)
        return NULL;
    double *dense = (double *)PyByteArray_AS_STRING(points);
    memset(dense, 0, bytes);
    for (size_t i = 0; i < count; i++)
        for (int e = 0; e < order[i]->count; e++)
            dense[i * n + (size_t)order[i]->column[e]] = order[i]->value[e];
    return points;
}

/* How many vertices have 0, 1, 2, .. positive entries, as a list; NULL with an exception. */
static PyObject *support_sizes(const Walk *w, Point *const *order, size_t count)
{
    size_t length = (size_t)w->basis.capacity + 1;
    size_t *sizes = calloc(length, sizeof(size_t));
    if (!sizes)
        return PyErr_NoMemory();
    for (size_t i = 0; i < count; i++)
        sizes[order[i]->count]++;
    PyObject *list = PyList_New((Py_ssize_t)length);
    for (size_t s = 0; list && s < length; s++) {
        PyObject *size = PyLong_FromSize_t(sizes[s]);
        if (size)
            PyList_SET_ITEM(list, (Py_ssize_t)s, size);
        else
            Py_CLEAR(list);
    }
    free(sizes);
    return list;
}

/* The answer in Python; NULL with an exception. */
static PyObject *pack(const Walk *w, int status, Point *const *order, size_t kept, int wanted)
{
    Py_ssize_t degenerate = 0;
    for (size_t i = 0; i < kept; i++)
        degenerate += order[i]->degenerate;
    PyObject *points = dense_points(w, order, wanted ? kept : 0);
    if (!points)
        return NULL;
    PyObject *sizes = support_sizes(w, order, kept);
    if (!sizes) {
        Py_DECREF(points);
        return NULL;
    }
    return Py_BuildValue("iNNnnn", status, points, sizes, (Py_ssize_t)w->count, degenerate,
                         (Py_ssize_t)w->failures);
}

/* Walk without the interpreter's lock, and sort what there is to return; NULL with an exception. */
static PyObject *run(Walk *w, const Request *request)
{
    Point **order = NULL;
    size_t kept = 0;
    Pause pause = {PyEval_SaveThread(), now_seconds() + request->seconds, 0};
    int status = NO_MEMORY;
    if (pivot_problem_init(&w->problem, request->m, request->n, request->rows, request->magnitude,
                           request->lower, request->upper) == 0 &&
        pivot_walk_init(w) == 0)
        status = pivot_find_start(w);
    w->failures += status == FAILED;
    if (status == DONE)
        status = pivot_walk(w, pause_walk, &pause);
    if (status == STOPPED && pause.late)
        status = LIMIT;
    if (status == DONE || status == FAILED || (status == LIMIT && !request->wanted)) {
        order = malloc(sizeof(Point *) * (w->points + 1));
        if (order)
            kept = pivot_sort_points(w, request->tolerance, order);
        else
            status = NO_MEMORY;
    }
    PyEval_RestoreThread(pause.state);
    PyObject *answer = NULL;
    if (status == NO_MEMORY)
        PyErr_NoMemory();
    else if (status != STOPPED) /* else a signal handler has raised */
        answer = pack(w, status, order, kept, request->wanted);
    free(order);
    pivot_walk_free(w);
    return answer;
}

/* Whether the buffers are of the shapes that m and n ask for. */
static int fits(const Py_buffer *rows, const Py_buffer *magnitude, const Py_buffer *lower,
                const Py_buffer *upper, Py_ssize_t n)
{
    Py_ssize_t item = (Py_ssize_t)sizeof(double);
    Py_ssize_t m = lower->len / item;
    if (n < 1 || n > INT32_MAX - 1 || m > INT32_MAX / 4)
        return 0;
    if (upper->len != lower->len || rows->len != m * n * item)
        return 0;
    return magnitude->len == rows->len;
}

static PyObject *enumerate_vertices(PyObject *Py_UNUSED(self), PyObject *args)
{
    Py_buffer rows, magnitude, lower, upper;
    Py_ssize_t most_bases, most_points;
    Request request;
    if (!PyArg_ParseTuple(args, "y*y*y*y*nnndpd", &rows, &magnitude, &lower, &upper, &request.n,
                          &most_bases, &most_points, &request.tolerance, &request.wanted,
                          &request.seconds))
        return NULL;
    PyObject *answer = NULL;
    if (!fits(&rows, &magnitude, &lower, &upper, request.n) || most_bases < 1 || most_points < 1) {
        PyErr_SetString(PyExc_ValueError,
                        "rows, magnitude, lower, upper must be float64 of shapes (m, n), (m, n), "
                        "(m,), (m,), and limits positive");
    } else {
        Walk walk;
        memset(&walk, 0, sizeof walk);
        walk.most_bases = (size_t)most_bases;
        walk.most_points = (size_t)most_points;
        request.m = lower.len / (Py_ssize_t)sizeof(double);
        request.rows = rows.buf;
        request.magnitude = magnitude.buf;
        request.lower = lower.buf;
        request.upper = upper.buf;
        answer = run(&walk, &request);
    }
    PyBuffer_Release(&rows);
    PyBuffer_Release(&magnitude);
    PyBuffer_Release(&lower);
    PyBuffer_Release(&upper);
    return answer;
}

PyDoc_STRVAR(
    enumerate_doc,
    "enumerate_vertices(rows, magnitude, lower, upper, n, most_bases, most_points, tolerance, "
    "wanted, seconds, /)\n--\n\n"
    "Walk over all bases of {v >= 0, sum v = 1, lower <= rows v <= upper}; C-contiguous float64\n"
    "buffers. `magnitude` is the size of the terms of which each entry is a sum, |rows| where "
    "they\n"
    "are exact.\n\n"
    "Returns (status, points, sizes, bases, degenerate, failures). Status: 0 done; 1 empty;\n"
    "2 stopped because there are more bases or points than allowed, or the seconds are over (then\n"
    "no points, and sizes only of the bases visited if not `wanted`); 3 some decisions contradict\n"
    "each other.\n"
    "Points: the rows of the vertices in lexicographic order, as float64 bytes (none unless\n"
    "`wanted`), those closer than `tolerance` in every entry merged. sizes[k]: how many have k\n"
    "positive entries. Then the number of bases found, of degenerate vertices and of "
    "contradictions.");

static PyMethodDef methods[] = {
    {"enumerate_vertices", enumerate_vertices, METH_VARARGS, enumerate_doc},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef_Slot slots[] = {{0, NULL}};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, .m_name = "_pivot", .m_doc = "Vertex enumeration by pivoting.",
    .m_methods = methods,  .m_slots = slots,
};

PyMODINIT_FUNC PyInit__pivot(void)
{
    return PyModuleDef_Init(&module);
}

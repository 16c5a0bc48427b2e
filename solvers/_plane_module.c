/* The module `solvers._plane`: `triples` and `pairs`, the compiled loops of `solvers.pricing.plane`.
 *
 * Both check that their arrays are contiguous and of the right sizes (`open_arrays`), loop over
 * symbols without the interpreter's lock until all are done or the seconds are over (`triples_of`,
 * `pairs_of`), and return (next, level, lowest, evaluated): the next call goes on from `next`. Two
 * arrays are updated in place: `best` has the least cost of a mixture with each symbol, `support`
 * the three members of that mixture. For example, best[4] = -0.1 and support[4] = (4, 7, -1) say
 * that symbol 4 is cheapest in a pair with 7.
 */

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "_clock.h"
#include "_plane.h"

/* An array argument: how many items it must have, and of which type. */
typedef struct {
    const char *name;
    PyObject *source;
    Py_ssize_t count;
    const char *format; /* "d" or "i" */
    int writable;
} Array;

/* A contiguous buffer of the items; -1 with an exception. */
static int open_array(const Array *array, Py_buffer *view)
{
    int flags = PyBUF_C_CONTIGUOUS | PyBUF_FORMAT;
    if (array->writable)
        flags |= PyBUF_WRITABLE;
    if (PyObject_GetBuffer(array->source, view, flags) < 0)
        return -1;
    int has_format = view->format && strcmp(view->format, array->format) == 0;
    if (has_format && view->len == array->count * view->itemsize)
        return 0;
    PyErr_Format(PyExc_ValueError, "%s must be a contiguous array of %zd items of format %s",
                 array->name, array->count, array->format);
    PyBuffer_Release(view);
    return -1;
}

static void release(Py_buffer *views, int count)
{
    for (int i = 0; i < count; i++)
        PyBuffer_Release(&views[i]);
}

/* Buffers of all arrays, or none and -1 with an exception. */
static int open_arrays(const Array *arrays, Py_buffer *views, int count)
{
    for (int i = 0; i < count; i++) {
        if (open_array(&arrays[i], &views[i]) < 0) {
            release(views, i);
            return -1;
        }
    }
    return 0;
}

/* Work space for n symbols; -1 without memory. */
static int space_init(Space *space, ptrdiff_t n)
{
    size_t bytes = (size_t)n * (7 * sizeof(double) + 2 * sizeof(int32_t)) + 64;
    double *at = malloc(bytes);
    space->memory = at;
    if (!at)
        return -1;
    space->up.p = at;
    space->up.o = at + n;
    space->up.s = at + 2 * n;
    space->down.p = at + 3 * n;
    space->down.o = at + 4 * n;
    space->down.s = at + 5 * n;
    space->bound = at + 6 * n;
    space->up.index = (int32_t *)(at + 7 * n);
    space->down.index = space->up.index + n;
    return 0;
}

/* Whether all of them are indices of points. */
static int are_indices(const int32_t *index, Py_ssize_t count, Py_ssize_t n)
{
    for (Py_ssize_t c = 0; c < count; c++)
        if (index[c] < 0 || index[c] >= n)
            return 0;
    return 1;
}

/* triples(f, g, s, candidates, best, support, offset, size, reach, blur, level, keep, lowest,
 * floor, first, seconds) -> (next candidate, level, lowest, evaluated). */
static PyObject *plane_triples(PyObject *Py_UNUSED(module), PyObject *args)
{
    enum { F, G, S, CANDIDATES, BEST, SUPPORT, ARRAYS };
    Array in[ARRAYS] = {
        [F] = {.name = "f", .format = "d"},
        [G] = {.name = "g", .format = "d"},
        [S] = {.name = "s", .format = "d"},
        [CANDIDATES] = {.name = "candidates", .format = "i"},
        [BEST] = {.name = "best", .format = "d", .writable = 1},
        [SUPPORT] = {.name = "support", .format = "i", .writable = 1},
    };
    Py_buffer views[ARRAYS];
    double seconds;
    Py_ssize_t first;
    Pricing pricing = {0};
    Plane plane = {0};
    if (!PyArg_ParseTuple(args, "OOOOOOddddddddnd", &in[F].source, &in[G].source, &in[S].source,
                          &in[CANDIDATES].source, &in[BEST].source, &in[SUPPORT].source,
                          &plane.offset, &pricing.size, &plane.reach, &pricing.blur, &pricing.level,
                          &pricing.keep, &pricing.lowest, &pricing.floor, &first, &seconds))
        return NULL;
    Py_ssize_t n = PyObject_Length(in[F].source);
    Py_ssize_t candidates = PyObject_Length(in[CANDIDATES].source);
    if (n < 0 || candidates < 0)
        return NULL;
    for (int t = 0; t < ARRAYS; t++)
        in[t].count = n;
    in[CANDIDATES].count = candidates;
    in[SUPPORT].count = 3 * n;
    if (open_arrays(in, views, ARRAYS) < 0)
        return NULL;
    const int32_t *candidate = views[CANDIDATES].buf;
    plane.f = views[F].buf;
    plane.g = views[G].buf;
    plane.s = views[S].buf;
    pricing.n = n;
    pricing.margin = slack(SHARP, pricing.size);
    pricing.best = views[BEST].buf;
    pricing.support = views[SUPPORT].buf;
    Py_ssize_t at = first < 0 ? 0 : first;
    Space space;
    int ready = space_init(&space, n + 1) == 0 && are_indices(candidate, candidates, n);
    if (ready) {
        Py_BEGIN_ALLOW_THREADS
        double end = now_seconds() + seconds;
        Py_ssize_t start = at;
        for (; at < candidates && (at == start || now_seconds() <= end); at++)
            triples_of(&pricing, &space, &plane, candidate[at]);
        Py_END_ALLOW_THREADS
    }
    free(space.memory);
    release(views, ARRAYS);
    if (!ready) {
        PyErr_SetString(PyExc_ValueError,
                        "candidates must be indices of points, and memory enough for them");
        return NULL;
    }
    return Py_BuildValue("nddL", at, pricing.level, pricing.lowest, pricing.evaluated);
}

/* pairs(lines, y, best, support, line, blur, outside, size, level, keep, lowest, floor, first,
 * seconds) -> (next symbol, level, lowest, evaluated). Each row of `lines` is a line's function
 * at the symbols, and a mixture counts where no other one is above `outside`. */
static PyObject *plane_pairs(PyObject *Py_UNUSED(module), PyObject *args)
{
    enum { LINES, Y, BEST, SUPPORT, ARRAYS };
    Array in[ARRAYS] = {
        [LINES] = {.name = "lines", .format = "d"},
        [Y] = {.name = "y", .format = "d"},
        [BEST] = {.name = "best", .format = "d", .writable = 1},
        [SUPPORT] = {.name = "support", .format = "i", .writable = 1},
    };
    Py_buffer views[ARRAYS];
    double seconds;
    Py_ssize_t line, first;
    Pricing pricing = {0};
    Lines lines = {0};
    if (!PyArg_ParseTuple(args, "OOOOndddddddnd", &in[LINES].source, &in[Y].source,
                          &in[BEST].source, &in[SUPPORT].source, &line, &pricing.blur,
                          &lines.outside, &pricing.size, &pricing.level, &pricing.keep,
                          &pricing.lowest, &pricing.floor, &first, &seconds))
        return NULL;
    Py_ssize_t count = PyObject_Length(in[LINES].source);
    Py_ssize_t n = PyObject_Length(in[Y].source);
    if (count < 0 || n < 0)
        return NULL;
    if (line < 0 || line >= count || first < 0) {
        PyErr_SetString(PyExc_ValueError, "line and first must be indices");
        return NULL;
    }
    in[LINES].count = count * n;
    in[Y].count = n;
    in[BEST].count = n;
    in[SUPPORT].count = 3 * n;
    if (open_arrays(in, views, ARRAYS) < 0)
        return NULL;
    lines.all = views[LINES].buf;
    lines.lines = count;
    lines.line = line;
    lines.y = views[Y].buf;
    pricing.n = n;
    pricing.margin = slack(SHARP, pricing.size);
    pricing.best = views[BEST].buf;
    pricing.support = views[SUPPORT].buf;
    Py_ssize_t i = first;
    Space space;
    int ready = space_init(&space, n + 1) == 0;
    if (ready) {
        Py_BEGIN_ALLOW_THREADS
        double end = now_seconds() + seconds;
        gather_above(&pricing, &space, &lines);
        for (; i < n && (i == first || now_seconds() <= end); i++)
            pairs_of(&pricing, &space, &lines, (int32_t)i);
        Py_END_ALLOW_THREADS
    }
    free(space.memory);
    release(views, ARRAYS);
    if (!ready)
        return PyErr_NoMemory();
    return Py_BuildValue("nddL", i, pricing.level, pricing.lowest, pricing.evaluated);
}

static PyMethodDef methods[] = {
    {"triples", plane_triples, METH_VARARGS, "Price the triples around one point."},
    {"pairs", plane_pairs, METH_VARARGS, "Price the pairs across one line."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef plane_module = {
    PyModuleDef_HEAD_INIT,
    .m_name = "solvers._plane",
    .m_doc = "Compiled loops of `solvers.pricing.plane`.",
    .m_methods = methods,
};

PyMODINIT_FUNC PyInit__plane(void)
{
    return PyModule_Create(&plane_module);
}

/* The module `solvers._kernel`: its type Search, branch and bound (`_tree.h`) over a polytope
 * whose rows are all listed.
 *
 * `kernel_new` copies the arguments into a problem: the rows of the matrix, with the ends of a
 * larger set, over which bounds hold, and of a smaller one, in which points lie (`set_problem`).
 * Further rows a.x <= 1, the cuts, go to a separator, which gives them to a program only where
 * they are violated (`set_cuts`, `_listed_rows.h`). The methods are those of `_search_type.c`, and
 * `walk`, the local search from vertex to vertex (`_kernel_walk.c`).
 */

#include "_clock.h"
#include "_listed_rows.h"
#include "_search_type.h"

/* Bases are kept in 16 bits. */
#define MOST_VARIABLES INT16_MAX
/* Intervals are cut near the middle, a fifth of the way towards the program's point. */
#define TO_MIDDLE 0.8
/* Vertices have few positive coordinates: every node is treated as sparse. */
#define SPARSE_SHARE 1.0
/* Cuts that a program has room for: so many for each coordinate, and some. A basis has at most so
 * many structurals, so as many cuts again may wait to be dropped. */
#define CUTS_PER_COORDINATE 2
#define SPARE_CUTS 64

/* Copy the arguments into the problem; -1 with an exception. */
static int set_problem(Problem *problem, PyObject *const *arguments, int n, int N, int rows)
{
    problem->n = n;
    problem->N = N;
    problem->fixed = rows;
    problem->rows = copy_doubles(arguments[0], (Py_ssize_t)rows * N, "matrix");
    if (!problem->rows)
        return -1;
    problem->outer_lower = copy_doubles(arguments[1], rows, "outer_lower");
    if (!problem->outer_lower)
        return -1;
    problem->outer_upper = copy_doubles(arguments[2], rows, "outer_upper");
    if (!problem->outer_upper)
        return -1;
    problem->inner_lower = copy_doubles(arguments[3], rows, "inner_lower");
    if (!problem->inner_lower)
        return -1;
    problem->inner_upper = copy_doubles(arguments[4], rows, "inner_upper");
    if (!problem->inner_upper)
        return -1;
    problem->top = copy_doubles(arguments[5], N, "upper");
    if (!problem->top)
        return -1;
    problem->row_weight = calloc((size_t)rows, sizeof(double));
    if (!problem->row_weight) {
        PyErr_NoMemory();
        return -1;
    }
    weigh_rows(problem);
    return 0;
}

/* Copy the cuts (count x N, each with the end 1) into the problem; -1 with an exception. */
static int set_cuts(Problem *problem, PyObject *source, Py_ssize_t count)
{
    double *rows = copy_doubles(source, count * problem->N, "cuts");
    if (!rows)
        return -1;
    ListedRows *list = listed_rows(rows, (int)count, problem->N);
    free(rows);
    if (!list) {
        PyErr_NoMemory();
        return -1;
    }
    problem->separator = &list->separator;
    problem->cut_outer = LISTED_END;
    problem->cut_inner = LISTED_END;
    return 0;
}

/* Search(matrix, outer_lower, outer_upper, inner_lower, inner_upper, upper, n, cuts=None,
 * count=0): the sum row is one of the rows; n of the columns are coordinates, the others auxiliary.
 * The cuts are further rows a.x <= 1. */
static PyObject *kernel_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"matrix",      "outer_lower", "outer_upper", "inner_lower",
                            "inner_upper", "upper",       "n",           "cuts",
                            "count",       NULL};
    PyObject *arguments[6];
    PyObject *cuts = Py_None;
    int n;
    Py_ssize_t count = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OOOOOOi|On", names, &arguments[0],
                                     &arguments[1], &arguments[2], &arguments[3], &arguments[4],
                                     &arguments[5], &n, &cuts, &count))
        return NULL;
    Py_ssize_t rows = PyObject_Length(arguments[1]);
    Py_ssize_t N = PyObject_Length(arguments[5]);
    Py_ssize_t capacity = rows;
    if (count > 0)
        capacity += CUTS_PER_COORDINATE * N + SPARE_CUTS;
    if (rows < 1 || N < n || n < 1 || count < 0 || capacity + N > MOST_VARIABLES) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_ValueError,
                            "wrong sizes: at least one row and one coordinate, at most 32767 "
                            "together");
        return NULL;
    }
    SearchObject *self = (SearchObject *)type->tp_alloc(type, 0);
    if (!self)
        return NULL;
    Search *search = &self->search;
    search->to_middle = TO_MIDDLE;
    search->sparse_share = SPARSE_SHARE;
    if (set_problem(&search->problem, arguments, n, (int)N, (int)rows) < 0) {
        Py_DECREF(self);
        return NULL;
    }
    if (count > 0 && set_cuts(&search->problem, cuts, count) < 0) {
        Py_DECREF(self);
        return NULL;
    }
    if (search_init(search, (int)capacity) < 0) {
        Py_DECREF(self);
        return PyErr_NoMemory();
    }
    return (PyObject *)self;
}

static const char walk_doc[] =
    "Walks from vertex to vertex: walk(points, count, first, step, seconds) -> next.";

/* Walks from the points first, first + step, ... of `count`, one at least, until the time is
 * over; the next one, or -1 without memory. */
static int walk_from_points(Search *search, const double *points, int count, int first, int step,
                            double seconds)
{
    size_t n = (size_t)search->problem.n;
    double end = now_seconds() + seconds;
    int k = first;
    for (; k < count && (k == first || now_seconds() <= end); k += step) {
        if (search->points.count >= search->points.most)
            return count;
        memcpy(search->program.point, points + (size_t)k * n, sizeof(double) * n);
        if (descend(search, LAST_STAGE) == INFINITY)
            continue;
        if (keep_point(search, walk(search)) < 0)
            return -1;
    }
    return k;
}

static PyObject *kernel_walk(SearchObject *self, PyObject *args)
{
    PyObject *source;
    int count, first, step;
    double seconds;
    if (!PyArg_ParseTuple(args, "Oiiid", &source, &count, &first, &step, &seconds))
        return NULL;
    if (count < 0 || first < 0 || step < 1) {
        PyErr_SetString(PyExc_ValueError, "count and first must be at least 0 and step at least 1");
        return NULL;
    }
    double *points = copy_doubles(source, (Py_ssize_t)count * self->search.problem.n, "points");
    if (!points)
        return NULL;
    if (search_enter(self) < 0) {
        free(points);
        return NULL;
    }
    int next;
    Py_BEGIN_ALLOW_THREADS
    next = walk_from_points(&self->search, points, count, first, step, seconds);
    Py_END_ALLOW_THREADS
    self->busy = 0;
    free(points);
    if (next < 0)
        return PyErr_NoMemory();
    return PyLong_FromLong(next);
}

static PyMethodDef kernel_methods[] = {
    {"start", (PyCFunction)(void (*)(void))search_start, METH_VARARGS | METH_KEYWORDS,
     search_start_doc},
    {"run", (PyCFunction)search_run, METH_VARARGS, search_run_doc},
    {"descend", (PyCFunction)search_descend, METH_VARARGS, search_descend_doc},
    {"walk", (PyCFunction)kernel_walk, METH_VARARGS, walk_doc},
    {"tighten", (PyCFunction)search_tighten, METH_VARARGS, search_tighten_doc},
    {"linear", (PyCFunction)search_linear, METH_VARARGS, search_linear_doc},
    {"columns", (PyCFunction)search_columns, METH_NOARGS, search_columns_doc},
    {"state", (PyCFunction)search_state, METH_NOARGS, search_state_doc},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot kernel_type_slots[] = {
    {Py_tp_new, kernel_new},
    {Py_tp_dealloc, search_dealloc},
    {Py_tp_methods, kernel_methods},
    {Py_tp_doc,
     "Branch and bound for a separable concave function over a polytope in the simplex."},
    {0, NULL},
};

static PyType_Spec kernel_spec = {
    .name = "solvers._kernel.Search",
    .basicsize = sizeof(SearchObject),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = kernel_type_slots,
};

static int kernel_exec(PyObject *module)
{
    return search_add_type(module, &kernel_spec);
}

static PyModuleDef_Slot kernel_slots[] = {{Py_mod_exec, kernel_exec}, {0, NULL}};

static struct PyModuleDef kernel_module = {
    PyModuleDef_HEAD_INIT,
    .m_name = "solvers._kernel",
    .m_doc = "Compiled kernel of `solvers.pricing.concave`.",
    .m_slots = kernel_slots,
};

PyMODINIT_FUNC PyInit__kernel(void)
{
    return PyModuleDef_Init(&kernel_module);
}

/* The module `solvers._robust`: its type Search, branch and bound (`_tree.h`) over an uncertain
 * set, whose rows are found one by one (`_robust_rows.h`).
 *
 * `robust_new` copies the arguments into a problem with one fixed row, sum v = 1 (`set_problem`),
 * and a separator (`set_uncertain_rows`). The rows a.v <= 0 that it finds are a.v <= allowance in
 * programs that give bounds, so that rounding excludes no member, and a.v <= -margin in those that
 * give points, so that each is a member. The methods are those of `_search_type.c`.
 */

#include "_robust_rows.h"
#include "_search_type.h"

/* Intervals are cut half way between the program's point and the middle. */
#define TO_MIDDLE 0.5
/* Wide intervals leave vertices few zeros, narrow ones on many symbols two or three entries; a
 * point with at most this share of positive coordinates is of the second kind. */
#define SPARSE_SHARE 0.5
/* Rows that a program has room for: so many for each symbol, and some. A basis has at most n + 1
 * structurals, so as many rows again may wait to be dropped. */
#define ROWS_PER_SYMBOL 2
#define SPARE_ROWS 64
/* Bases are kept in 16 bits. */
#define MOST_VARIABLES INT16_MAX

/* The arguments of `Search`, as they are in Python. */
typedef struct {
    PyObject *lower, *spread, *room, *scale, *share_lower, *share_spread, *top;
    double share_room, ratio, most, least, margin, allowance, rest;
} Arguments;

/* A separator with copies of the arguments, as the problem's own; -1 with an exception. */
static int set_uncertain_rows(Problem *problem, const Arguments *from, Py_ssize_t n,
                              Py_ssize_t size)
{
    UncertainRows *set = calloc(1, sizeof *set);
    if (!set) {
        PyErr_NoMemory();
        return -1;
    }
    set->separator.separate = separate_uncertain;
    set->separator.release = release_uncertain;
    problem->separator = &set->separator;
    set->n = (int)n;
    set->size = (int)size;
    set->share_room = from->share_room;
    set->ratio = from->ratio;
    set->most = from->most;
    set->least = from->least;
    set->rest = from->rest;
    set->lower = copy_doubles(from->lower, size * (n + 1), "lower");
    if (!set->lower)
        return -1;
    set->spread = copy_doubles(from->spread, size * (n + 1), "spread");
    if (!set->spread)
        return -1;
    set->room = copy_doubles(from->room, size, "room");
    if (!set->room)
        return -1;
    set->scale = copy_doubles(from->scale, n, "scale");
    if (!set->scale)
        return -1;
    set->share_lower = copy_doubles(from->share_lower, size, "share_lower");
    if (!set->share_lower)
        return -1;
    set->share_spread = copy_doubles(from->share_spread, size, "share_spread");
    if (!set->share_spread)
        return -1;
    if (init_uncertain_scratch(set) < 0) {
        PyErr_NoMemory();
        return -1;
    }
    return 0;
}

/* An array of `count` doubles, all `value`; NULL with an exception. */
static double *filled(Py_ssize_t count, double value)
{
    double *array = malloc(sizeof(double) * (size_t)count);
    if (!array) {
        PyErr_NoMemory();
        return NULL;
    }
    for (Py_ssize_t i = 0; i < count; i++)
        array[i] = value;
    return array;
}

/* The fixed part: one row, sum v = 1; -1 with an exception. */
static int set_problem(Problem *problem, const Arguments *from, Py_ssize_t n)
{
    problem->n = (int)n;
    problem->N = (int)n;
    problem->fixed = 1;
    problem->cut_outer = from->allowance;
    problem->cut_inner = -from->margin;
    problem->top = copy_doubles(from->top, n, "top");
    if (!problem->top)
        return -1;
    problem->rows = filled(n, 1.0);
    if (!problem->rows)
        return -1;
    problem->outer_lower = filled(1, 1.0);
    if (!problem->outer_lower)
        return -1;
    problem->outer_upper = filled(1, 1.0);
    if (!problem->outer_upper)
        return -1;
    problem->inner_lower = filled(1, 1.0);
    if (!problem->inner_lower)
        return -1;
    problem->inner_upper = filled(1, 1.0);
    if (!problem->inner_upper)
        return -1;
    problem->row_weight = filled(1, 0.0);
    if (!problem->row_weight)
        return -1;
    weigh_rows(problem);
    return 0;
}

/* Search(lower, spread, room, scale, share_lower, share_spread, share_room, ratio, upper, least,
 * margin, allowance, rest, top): as in UncertainRows; rows are a.v <= allowance for bounds and
 * a.v <= -margin for points, and top are upper bounds of v. */
static PyObject *robust_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"lower",        "spread",     "room",  "scale", "share_lower",
                            "share_spread", "share_room", "ratio", "upper", "least",
                            "margin",       "allowance",  "rest",  "top",   NULL};
    Arguments from;
    if (!PyArg_ParseTupleAndKeywords(
            args, kwargs, "OOOOOOdddddddO", names, &from.lower, &from.spread, &from.room,
            &from.scale, &from.share_lower, &from.share_spread, &from.share_room, &from.ratio,
            &from.most, &from.least, &from.margin, &from.allowance, &from.rest, &from.top))
        return NULL;
    Py_ssize_t n = PyObject_Length(from.scale);
    Py_ssize_t size = PyObject_Length(from.room);
    Py_ssize_t capacity = ROWS_PER_SYMBOL * n + SPARE_ROWS;
    if (n < 1 || size < 1 || n + capacity > MOST_VARIABLES) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_ValueError,
                            "wrong sizes: at least one box and one coordinate, at most 10900 "
                            "coordinates");
        return NULL;
    }
    SearchObject *self = (SearchObject *)type->tp_alloc(type, 0);
    if (!self)
        return NULL;
    Search *search = &self->search;
    search->to_middle = TO_MIDDLE;
    search->sparse_share = SPARSE_SHARE;
    if (set_problem(&search->problem, &from, n) < 0 ||
        set_uncertain_rows(&search->problem, &from, n, size) < 0) {
        Py_DECREF(self);
        return NULL;
    }
    if (search_init(search, (int)capacity) < 0) {
        Py_DECREF(self);
        return PyErr_NoMemory();
    }
    return (PyObject *)self;
}

static PyMethodDef robust_methods[] = {
    {"start", (PyCFunction)(void (*)(void))search_start, METH_VARARGS | METH_KEYWORDS,
     search_start_doc},
    {"run", (PyCFunction)search_run, METH_VARARGS, search_run_doc},
    {"descend", (PyCFunction)search_descend, METH_VARARGS, search_descend_doc},
    {"tighten", (PyCFunction)search_tighten, METH_VARARGS, search_tighten_doc},
    {"linear", (PyCFunction)search_linear, METH_VARARGS, search_linear_doc},
    {"columns", (PyCFunction)search_columns, METH_NOARGS, search_columns_doc},
    {"state", (PyCFunction)search_state, METH_NOARGS, search_state_doc},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot robust_type_slots[] = {
    {Py_tp_new, robust_new},
    {Py_tp_dealloc, search_dealloc},
    {Py_tp_methods, robust_methods},
    {Py_tp_doc, "Branch and bound for a separable concave function over probability vectors with "
                "uncertain rows."},
    {0, NULL},
};

static PyType_Spec robust_spec = {
    .name = "solvers._robust.Search",
    .basicsize = sizeof(SearchObject),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = robust_type_slots,
};

static int robust_exec(PyObject *module)
{
    return search_add_type(module, &robust_spec);
}

static PyModuleDef_Slot robust_slots[] = {{Py_mod_exec, robust_exec}, {0, NULL}};

static struct PyModuleDef robust_module = {
    PyModuleDef_HEAD_INIT,
    .m_name = "solvers._robust",
    .m_doc = "Compiled kernel of `solvers.RobustSearch`.",
    .m_slots = robust_slots,
};

PyMODINIT_FUNC PyInit__robust(void)
{
    return PyModuleDef_Init(&robust_module);
}

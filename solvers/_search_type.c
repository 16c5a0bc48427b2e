/* The methods that the Python types `_kernel.Search` and `_robust.Search` share: each checks its
 * arguments, works on the tree of `_tree.h` (the long ones without the interpreter's lock), and
 * returns numbers and bytes.
 *
 * A tree is searched in slices, so that Python can look at signals and at time limits in between:
 *
 *     search.start(y, cutoff, ...)         prices and limits; pushes the first nodes (`split_root`);
 *                                          after `time_left` seconds no program or step begins
 *     search.run(nodes, seconds, columns)  processes nodes, the least bound first (`work_on_tree`),
 *                                          until the tree is done or a limit is met: RUN_DONE,
 *                                          RUN_PAUSED, RUN_COLUMNS (enough points) or RUN_MEMORY
 *     search.state()                       (bound, open nodes, ...): the bound is the least of
 *                                          open nodes, closed leaves and the cutoff
 *     search.columns()                     the points found, as compressed rows
 *
 * For example, the points (0.5, 0, 0.5) and (0, 1, 0) are count 2, indptr 0 2 3, indices 0 2 1 and
 * values 0.5 0.5 1. The other methods need no tree: `descend` runs local searches, `tighten`
 * lowers the upper bounds of the coordinates, one linear program each, and `linear` solves one
 * program. `descend` and `tighten` are resumed, too: they return the index at which the next call
 * begins.
 *
 * Every method claims the search first (`search_enter`): two threads never work in the same one.
 */

#include "_search_type.h"

#include "_clock.h"

/* What `run` returns. */
enum { RUN_DONE, RUN_PAUSED, RUN_COLUMNS, RUN_MEMORY };

/* |log u| of a positive float32 stays below 104, so chord costs stay below max |y| and this. */
#define LARGEST_SLOPE 100.0
/* Costs that tell the other coordinates apart where one is maximised. */
#define TIE_BREAK 1e-10
/* Nodes between two looks at the clock, less one: a mask. */
#define CLOCK_MASK 15
/* Seconds that one node, one upper bound, or one local search with cuts may take: on hundreds of
 * symbols with wide intervals it may need thousands of rows, and no limit would hold. */
#define PATIENCE 1.0

/* ---------------------------------------------------------------- the object */

/* Release the search, the object, and its reference of the type. */
void search_dealloc(SearchObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    search_free(&self->search);
    type->tp_free((PyObject *)self);
    Py_DECREF(type);
}

/* Claim the search for this call; -1 with an exception if another one is at work in it, as may
 * be the case after Ctrl-C. Whoever enters sets `busy` back to 0. */
int search_enter(SearchObject *self)
{
    if (self->busy) {
        PyErr_SetString(PyExc_RuntimeError,
                        "this search is still at work in another thread; wait for it or make "
                        "another one");
        return -1;
    }
    self->busy = 1;
    return 0;
}

/* A private copy of `count` doubles from a buffer; NULL with an exception. */
double *copy_doubles(PyObject *source, Py_ssize_t count, const char *name)
{
    Py_buffer view;
    if (PyObject_GetBuffer(source, &view, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT) < 0)
        return NULL;
    double *copy = NULL;
    int is_double = view.itemsize == 8 && view.format && strcmp(view.format, "d") == 0;
    if (!is_double || view.len != 8 * count) {
        PyErr_Format(PyExc_ValueError, "%s must be a contiguous array of %zd float64", name, count);
    } else {
        copy = malloc(sizeof(double) * (size_t)(count > 0 ? count : 1));
        if (copy)
            memcpy(copy, view.buf, (size_t)view.len);
        else
            PyErr_NoMemory();
    }
    PyBuffer_Release(&view);
    return copy;
}

/* Create the type and put it into the module as `Search`. */
int search_add_type(PyObject *module, PyType_Spec *spec)
{
    PyObject *type = PyType_FromModuleAndSpec(module, spec, NULL);
    if (!type)
        return -1;
    int failed = PyModule_AddObjectRef(module, "Search", type);
    Py_DECREF(type);
    return failed;
}

/* ---------------------------------------------------------------- the tree */

const char search_start_doc[] = "Begin a tree for the prices y.";

/* Forget the last tree and what it counted. */
static void clear_counts(Search *search)
{
    clear_tree(search);
    search->best = INFINITY;
    search->closed = INFINITY;
    search->nodes = 0;
    search->peak_boxes = search->boxes;
    search->points.count = 0;
    search->points.entries = 0;
    search->program.pivots = 0;
    search->program.programs = 0;
}

/* The prices of all structural variables: y, then minus the costs of the auxiliary ones (None: they
 * cost nothing); NULL with an exception set. */
static double *copy_prices(const Problem *problem, PyObject *source, PyObject *auxiliary)
{
    int n = problem->n;
    int N = problem->N;
    double *y = copy_doubles(source, n, "y");
    if (!y)
        return NULL;
    double *prices = realloc(y, sizeof(double) * (size_t)N);
    if (!prices) {
        free(y);
        PyErr_NoMemory();
        return NULL;
    }
    for (int j = n; j < N; j++)
        prices[j] = 0.0;
    if (auxiliary == Py_None)
        return prices;
    double *costs = copy_doubles(auxiliary, N - n, "auxiliary_costs");
    if (!costs) {
        free(prices);
        return NULL;
    }
    for (int j = n; j < N; j++)
        prices[j] = -costs[j - n];
    free(costs);
    return prices;
}

PyObject *search_start(SearchObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"y",           "cutoff",    "tolerance", "slack", "column_cutoff",
                            "max_columns", "box_limit", "part",      "parts", "auxiliary_costs",
                            "halves",      "time_left", NULL};
    Search *search = &self->search;
    PyObject *source;
    PyObject *auxiliary = Py_None;
    double cutoff, column_cutoff, tolerance, slack;
    int most_points;
    int part = 0;
    int parts = 1;
    int halves = 0;
    double time_left = INFINITY;
    long long box_limit;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OddddiL|iiOpd", names, &source, &cutoff,
                                     &tolerance, &slack, &column_cutoff, &most_points, &box_limit,
                                     &part, &parts, &auxiliary, &halves, &time_left))
        return NULL;
    double *prices = copy_prices(&search->problem, source, auxiliary);
    if (!prices)
        return NULL;
    if (search_enter(self) < 0) {
        free(prices);
        return NULL;
    }
    free(search->prices);
    search->prices = prices;
    search->halves = halves;
    double largest = 0.0;
    for (int j = 0; j < search->problem.N; j++)
        largest = larger(largest, fabs(prices[j]));
    clear_counts(search);
    search->magnitude = largest + LARGEST_SLOPE;
    search->cutoff = cutoff;
    search->column_cutoff = column_cutoff;
    search->points.most = most_points;
    search->box_limit = box_limit;
    search->tolerance = tolerance;
    search->slack = slack;
    search->leaf = LEAF_SHARE * tolerance;
    search->program.cut_tolerance = search->leaf;
    search->program.ends = now_seconds() + time_left;
    int failed;
    Py_BEGIN_ALLOW_THREADS
    failed = split_root(search, part, parts) < 0;
    reset_rows(&search->problem, &search->program);
    Py_END_ALLOW_THREADS
    self->busy = 0;
    if (failed)
        return PyErr_NoMemory();
    Py_RETURN_NONE;
}

/* Memory of an open node as a share of that of a box; the heap may have to grow to twice its
 * size. */
static double node_share(const Search *search)
{
    double box = sizeof(Box) + 10.0 * search->problem.n + 2.0 * search->problem.fixed;
    return 2.0 * sizeof(Node) / box;
}

/* Process nodes until the tree is done or a limit is met: one of the RUN codes, or -1 without
 * memory. */
static int work_on_tree(Search *search, long long nodes, double seconds, int columns)
{
    double end = now_seconds() + seconds;
    double share = node_share(search);
    long long last = search->nodes + nodes;
    while (search->open > 0) {
        if (search->points.count >= columns)
            return RUN_COLUMNS;
        if ((double)search->boxes + share * search->open > (double)search->box_limit)
            return RUN_MEMORY;
        if (search->nodes >= last)
            return RUN_PAUSED;
        /* with cuts a single node may take long */
        if ((search->problem.separator || (search->nodes & CLOCK_MASK) == 0) &&
            now_seconds() > end)
            return RUN_PAUSED;
        Node node = pop_node(search);
        int failed = 0;
        if (node.bound <= search->cutoff) { /* else the cutoff has moved since */
            search->program.deadline = now_seconds() + PATIENCE;
            failed = process_node(search, node) < 0;
        }
        box_release(search, node.box);
        if (failed)
            return -1;
    }
    return RUN_DONE;
}

const char search_run_doc[] = "Work on the tree: run(nodes, seconds, columns) -> outcome.";

PyObject *search_run(SearchObject *self, PyObject *args)
{
    long long nodes;
    double seconds;
    int columns;
    if (!PyArg_ParseTuple(args, "Ldi", &nodes, &seconds, &columns))
        return NULL;
    if (search_enter(self) < 0)
        return NULL;
    int outcome;
    Py_BEGIN_ALLOW_THREADS
    outcome = work_on_tree(&self->search, nodes, seconds, columns);
    Py_END_ALLOW_THREADS
    self->busy = 0;
    if (outcome < 0)
        return PyErr_NoMemory();
    return PyLong_FromLong(outcome);
}

/* ---------------------------------------------------------------- local searches */

const char search_descend_doc[] = "Local searches from mixtures of unit vectors and a center: "
                                  "descend(center, weight, first, step, seconds) -> next.";

/* Local searches from weight e_j + (1 - weight) center for j = first, first + step, ..., one at
 * least, until the time is over; the next j, or -1 without memory. Each goes on from the basis
 * that the last one left, across calls, too. */
static int descend_from_mixtures(Search *search, const double *center, double weight, int first,
                                 int step, double seconds)
{
    int n = search->problem.n;
    double *point = search->program.point;
    double end = now_seconds() + seconds;
    int j = first;
    for (; j < n && (j == first || now_seconds() <= end); j += step) {
        if (search->points.count >= search->points.most)
            return n;
        for (int i = 0; i < n; i++)
            point[i] = (1.0 - weight) * center[i];
        point[j] += weight;
        search->program.deadline = now_seconds() + PATIENCE;
        if (keep_point(search, descend(search, COARSE_STAGE)) < 0)
            return -1;
    }
    return j;
}

PyObject *search_descend(SearchObject *self, PyObject *args)
{
    PyObject *source;
    double weight, seconds;
    int first, step;
    if (!PyArg_ParseTuple(args, "Odiid", &source, &weight, &first, &step, &seconds))
        return NULL;
    if (first < 0 || step < 1) {
        PyErr_SetString(PyExc_ValueError, "first must be at least 0 and step at least 1");
        return NULL;
    }
    double *center = copy_doubles(source, self->search.problem.n, "center");
    if (!center)
        return NULL;
    if (search_enter(self) < 0) {
        free(center);
        return NULL;
    }
    int next;
    Py_BEGIN_ALLOW_THREADS
    next = descend_from_mixtures(&self->search, center, weight, first, step, seconds);
    Py_END_ALLOW_THREADS
    self->busy = 0;
    free(center);
    if (next < 0)
        return PyErr_NoMemory();
    return PyLong_FromLong(next);
}

/* ---------------------------------------------------------------- linear programs */

const char search_tighten_doc[] = "Upper bounds of the columns by linear programs: "
                                  "tighten(first, seconds) -> (next, bounds as bytes).";

/* Costs of the program that maximises coordinate j. Beside -1 they are small and all different:
 * if they were zero, all reduced costs would be tied, no step of the dual simplex would raise its
 * value, and it would go in circles until it is given up. */
static void maximise(const Problem *problem, Program *lp, int j)
{
    for (int i = 0; i < problem->n; i++)
        lp->cost[i] = TIE_BREAK * (1.0 + (double)i / problem->n);
    lp->cost[j] = -1.0;
}

/* Lower the upper bounds of the coordinates first, first + 1, ... to safe maxima over the
 * larger set, by one program each, one at least, until the time is over; the next coordinate. */
static int tighten_tops(Search *search, int first, double seconds)
{
    Problem *problem = &search->problem;
    Program *lp = &search->program;
    double end = now_seconds() + seconds;
    int j = first;
    set_rows(problem, lp, OUTER_ROWS);
    open_box(problem, lp);
    if (first == 0)
        reset_rows(problem, lp);
    for (; j < problem->n && (j == first || now_seconds() <= end); j++) {
        /* the most that v_j can be is minus the least of -v_j */
        maximise(problem, lp, j);
        lp->deadline = now_seconds() + PATIENCE;
        recompute(problem, lp);
        solve(problem, lp, -INFINITY, INFINITY);
        /* The multipliers of this basis at the true costs, where it is optimal, too. Whatever they
         * are, the Lagrangian is a bound. */
        memset(lp->cost, 0, sizeof(double) * (size_t)problem->n);
        lp->cost[j] = -1.0;
        multipliers(lp);
        double top = -lagrangian(problem, lp, lp->cost, lp->dual, 0.0, 1.0);
        if (top < problem->top[j])
            problem->top[j] = larger(top, 0.0);
        lp->upper[j] = problem->top[j]; /* at once, so that pauses change nothing */
        drop_rows(problem, lp);
    }
    open_box(problem, lp);
    return j;
}

PyObject *search_tighten(SearchObject *self, PyObject *args)
{
    const Problem *problem = &self->search.problem;
    int first;
    double seconds;
    if (!PyArg_ParseTuple(args, "id", &first, &seconds))
        return NULL;
    if (first < 0) {
        PyErr_SetString(PyExc_ValueError, "first must be at least 0");
        return NULL;
    }
    if (search_enter(self) < 0)
        return NULL;
    int next;
    Py_BEGIN_ALLOW_THREADS
    next = tighten_tops(&self->search, first, seconds);
    Py_END_ALLOW_THREADS
    PyObject *tops =
        PyBytes_FromStringAndSize((char *)problem->top, (Py_ssize_t)sizeof(double) * problem->N);
    self->busy = 0;
    if (!tops)
        return NULL;
    return Py_BuildValue("iN", next, tops);
}

const char search_linear_doc[] = "Minimum of a linear function: (status, bound, point).";

/* Solve min cost.x over the larger set from scratch; the LP code, with the safe bound in *bound
 * (infinite if there is provably no point) and the solution in the program's point. */
static int solve_linear(Search *search, const double *cost, double *bound)
{
    const Problem *problem = &search->problem;
    Program *lp = &search->program;
    double magnitude = 0.0;
    open_box(problem, lp);
    lp->deadline = INFINITY;
    lp->ends = INFINITY;
    for (int j = 0; j < problem->n; j++) {
        lp->cost[j] = cost[j];
        magnitude = larger(magnitude, fabs(cost[j]));
    }
    reset_rows(problem, lp);
    recompute(problem, lp);
    int status = solve(problem, lp, -INFINITY, INFINITY);
    if (status == LP_INFEASIBLE) {
        *bound = proves_empty(problem, lp, lp->row_work) ? INFINITY : -INFINITY;
    } else {
        multipliers(lp);
        *bound = lagrangian(problem, lp, lp->cost, lp->dual, 0.0, magnitude);
    }
    primal_point(problem, lp);
    return status;
}

PyObject *search_linear(SearchObject *self, PyObject *args)
{
    Search *search = &self->search;
    PyObject *source;
    if (!PyArg_ParseTuple(args, "O", &source))
        return NULL;
    double *cost = copy_doubles(source, search->problem.n, "cost");
    if (!cost)
        return NULL;
    if (search_enter(self) < 0) {
        free(cost);
        return NULL;
    }
    double bound;
    int status = solve_linear(search, cost, &bound);
    free(cost);
    PyObject *point = PyBytes_FromStringAndSize((char *)search->program.point,
                                                (Py_ssize_t)sizeof(double) * search->problem.n);
    self->busy = 0;
    if (!point)
        return NULL;
    return Py_BuildValue("idN", status, bound, point);
}

/* ---------------------------------------------------------------- what was found */

const char search_columns_doc[] = "(count, indptr, indices, values, costs) as bytes.";

PyObject *search_columns(SearchObject *self, PyObject *Py_UNUSED(ignored))
{
    static int no_points = 0; /* where the compressed rows of no points start */
    if (search_enter(self) < 0)
        return NULL;
    self->busy = 0;
    const Points *points = &self->search.points;
    int any = points->count > 0;
    Py_ssize_t start = (Py_ssize_t)(sizeof(int) * (size_t)(points->count + 1));
    Py_ssize_t index = (Py_ssize_t)(sizeof(int) * (size_t)points->entries);
    Py_ssize_t value = (Py_ssize_t)(sizeof(double) * (size_t)points->entries);
    Py_ssize_t cost = (Py_ssize_t)(sizeof(double) * (size_t)points->count);
    return Py_BuildValue("iy#y#y#y#", points->count, (char *)(any ? points->start : &no_points),
                         start, any ? (char *)points->index : "", index,
                         any ? (char *)points->value : "", value, any ? (char *)points->cost : "",
                         cost);
}

const char search_state_doc[] = "(bound, open, columns, nodes, lps, pivots, peak boxes).";

PyObject *search_state(SearchObject *self, PyObject *Py_UNUSED(ignored))
{
    if (search_enter(self) < 0)
        return NULL;
    self->busy = 0;
    const Search *search = &self->search;
    double open = search->open ? search->heap[0].bound : INFINITY;
    double bound = smaller(open, search->closed);
    /* of pruned nodes only that they lie above the cutoff is proven */
    bound = smaller(bound, search->cutoff);
    return Py_BuildValue("diiLLLL", bound, search->open, search->points.count, search->nodes,
                         search->program.programs, search->program.pivots, search->peak_boxes);
}

/* The Python type over a Search, shared by the modules `_kernel` and `_robust`.
 *
 * A Search is the branch and bound of `_tree.h`: its problem, its open nodes and the points that it
 * has found. The functions below are in `_search_type.c`, whose head shows how a tree is searched
 * from Python: `start`, then `run` until the tree is done, `state` and `columns`.
 *
 * Buffers of float64 come in, bytes go out. A search works for one thread at a time: `busy` is set
 * while a method works in it, as the long ones give the interpreter's lock away. Each module adds
 * the constructor, which sets the problem, and its table of methods.
 */

#ifndef SOLVERS_SEARCH_TYPE_H
#define SOLVERS_SEARCH_TYPE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "_tree.h"

typedef struct {
    PyObject_HEAD Search search;
    int busy; /* whether some thread is at work in it */
} SearchObject;

int search_enter(SearchObject *self);
double *copy_doubles(PyObject *source, Py_ssize_t count, const char *name);
void search_dealloc(SearchObject *self);
int search_add_type(PyObject *module, PyType_Spec *spec);

PyObject *search_start(SearchObject *self, PyObject *args, PyObject *kwargs);
PyObject *search_run(SearchObject *self, PyObject *args);
PyObject *search_descend(SearchObject *self, PyObject *args);
PyObject *search_tighten(SearchObject *self, PyObject *args);
PyObject *search_linear(SearchObject *self, PyObject *args);
PyObject *search_columns(SearchObject *self, PyObject *ignored);
PyObject *search_state(SearchObject *self, PyObject *ignored);

extern const char search_start_doc[];
extern const char search_run_doc[];
extern const char search_descend_doc[];
extern const char search_tighten_doc[];
extern const char search_linear_doc[];
extern const char search_columns_doc[];
extern const char search_state_doc[];

#endif

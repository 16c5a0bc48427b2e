/* The open nodes of the tree, in a heap by their bounds, and the boxes that siblings share.
 *
 * A node is small: its bound, one changed interval, and a pointer to the box of its parent. The
 * box holds what is large, all intervals, the rows and the basis of the program, once for all
 * children. It counts its references and is freed with the last child. For example, a node split
 * at v_3 = 0.2 gives one box and two nodes, (box, 3, [0, 0.2]) and (box, 3, [0.2, 1]).
 *
 * `box_new` takes a copy of what is at hand, `box_load` brings rows and basis back; `push_node`
 * and `pop_node` keep the heap, whose top is the node of least bound.
 */

#include "_tree.h"

/* Nodes that the heap has room for at first; it doubles when full. */
#define FIRST_NODES 1024

/* Memory of a search whose problem is set; -1 without memory (search_free releases what there
 * is). */
int search_init(Search *search, int capacity)
{
    size_t n = (size_t)search->problem.n;
    search->prices = calloc((size_t)search->problem.N, sizeof(double));
    search->lower = calloc(n, sizeof(double));
    search->upper = calloc(n, sizeof(double));
    search->gain = calloc(n, sizeof(double));
    if (!search->prices || !search->lower || !search->upper || !search->gain)
        return -1;
    return program_init(&search->program, &search->problem, capacity);
}

/* Everything but the object itself. */
void search_free(Search *search)
{
    Problem *problem = &search->problem;
    clear_tree(search);
    program_free(&search->program, problem);
    points_free(&search->points);
    free(search->heap);
    free(search->prices);
    free(search->lower);
    free(search->upper);
    free(search->gain);
    free(problem->rows);
    free(problem->outer_lower);
    free(problem->outer_upper);
    free(problem->inner_lower);
    free(problem->inner_upper);
    free(problem->top);
    free(problem->row_weight);
    if (problem->separator)
        problem->separator->release(problem->separator);
    memset(search, 0, sizeof *search);
}

/* ---------------------------------------------------------------- boxes */

/* The intervals, rows and basis at hand as a box with one reference; NULL without memory.
 *
 * The box and its arrays are one block of memory. They follow each other by falling alignment:
 * pointers, floats, short integers. */
Box *box_new(Search *search)
{
    const Program *lp = &search->program;
    size_t n = (size_t)search->problem.n;
    size_t rows = (size_t)lp->M;
    int fixed = search->problem.fixed;
    size_t cuts = rows - (size_t)fixed;
    size_t bytes = sizeof(Box) + sizeof(Cut *) * cuts + sizeof(float) * 2 * n;
    Box *box = malloc(bytes + sizeof(int16_t) * (rows + n));
    if (!box)
        return NULL;
    box->refs = 1;
    box->rows = (int)rows;
    box->cuts = (int)cuts;
    box->cut = (Cut **)(box + 1);
    box->lower = (float *)(box->cut + cuts);
    box->upper = box->lower + n;
    box->basis = (int16_t *)(box->upper + n);
    box->rank = box->basis + rows;
    box->cap = 1.0f; /* caps nothing yet: coordinates are probabilities */
    for (size_t j = 0; j < n; j++) {
        float low = float_below(search->lower[j]);
        box->lower[j] = low < 0.0f ? 0.0f : low; /* coordinates are never negative */
        box->upper[j] = float_above(search->upper[j]);
    }
    for (size_t t = 0; t < cuts; t++) {
        box->cut[t] = lp->cut[(size_t)fixed + t];
        box->cut[t]->refs++;
    }
    for (size_t i = 0; i < rows; i++)
        box->basis[i] = (int16_t)lp->basis[i];
    search->boxes++;
    if (search->boxes > search->peak_boxes)
        search->peak_boxes = search->boxes;
    return box;
}

/* One reference less. */
void box_release(Search *search, Box *box)
{
    if (--box->refs > 0)
        return;
    for (int t = 0; t < box->cuts; t++)
        cut_release(box->cut[t]);
    free(box);
    search->boxes--;
}

/* Give the program the rows and the basis of a box, with the ends of the larger of its two sets. */
void box_load(Search *search, const Box *box)
{
    /* A node is a leaf once its bound is this close to its point, so that smaller violations of a
     * row need no cut. */
    search->program.cut_tolerance = search->leaf;
    load_rows(&search->problem, &search->program, box->cut, box->cuts);
    load_basis(&search->problem, &search->program, box->basis);
}

/* ---------------------------------------------------------------- open nodes */

/* A binary heap: the children of place i are at 2 i + 1 and 2 i + 2, and no child has a smaller
 * bound than its parent. */

/* Add a node, which takes a reference of its box; -1 without memory. */
int push_node(Search *search, Node node)
{
    if (search->open == search->heap_capacity) {
        int capacity = search->heap_capacity ? 2 * search->heap_capacity : FIRST_NODES;
        Node *larger = realloc(search->heap, sizeof(Node) * (size_t)capacity);
        if (!larger)
            return -1;
        search->heap = larger;
        search->heap_capacity = capacity;
    }
    int i = search->open++;
    /* Parents of a larger bound move down until the place for the node is free. */
    while (i > 0) {
        int parent = (i - 1) / 2;
        if (search->heap[parent].bound <= node.bound)
            break;
        search->heap[i] = search->heap[parent];
        i = parent;
    }
    search->heap[i] = node;
    node.box->refs++; /* whoever pops the node releases it */
    return 0;
}

/* Take the node of the least bound out of a heap that is not empty, with its reference. */
Node pop_node(Search *search)
{
    Node top = search->heap[0];
    Node last = search->heap[--search->open];
    int i = 0;
    /* The last node fills the gap at the top: smaller children move up until it fits. */
    for (;;) {
        int child = 2 * i + 1;
        if (child >= search->open)
            break;
        if (child + 1 < search->open && search->heap[child + 1].bound < search->heap[child].bound)
            child++;
        if (search->heap[child].bound >= last.bound)
            break;
        search->heap[i] = search->heap[child];
        i = child;
    }
    if (search->open)
        search->heap[i] = last;
    return top;
}

/* Forget all open nodes. */
void clear_tree(Search *search)
{
    for (int i = 0; i < search->open; i++)
        box_release(search, search->heap[i].box);
    search->open = 0;
}

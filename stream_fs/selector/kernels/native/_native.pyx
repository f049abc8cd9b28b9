# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
"""The boundary between NumPy arrays and the loops in C: checks every array, then passes pointers.

An array of another type, rank or layout raises the ValueError of its memoryview, which names both
types; one of another shape raises a ValueError, too. One binary serves every version of Python from
3.11 on (stable ABI).
"""

from cpython.mem cimport PyMem_Calloc, PyMem_Free
from libc.stdint cimport int32_t, int64_t, uint8_t
from scipy.linalg.cython_blas cimport dgemm, sgemm

cdef extern from "loops.h" nogil:
    const char *SOURCE_DIGEST  # set by CMakeLists.txt

    ctypedef struct gemm_float:
        pass

    ctypedef struct gemm_double:
        pass

    struct view:
        int64_t N, n, d, K
        double xi, eta
        const void *rows
        const int64_t *row_starts
        const int32_t *row_columns
        const void *row_values
        const uint8_t *present
        const void *share
        const void *fit_weights
        const void *beta_W
        const void *diagonal
        const void *consensus_share
        const void *beta_W_total
        const int32_t *theta_starts
        const int32_t *theta_columns
        const void *theta_S
        const double *R0
        const void *Q0
        const void *S0
        void *V
        void *lengths
        void *U
        void *products
        void *consensus
        double loss, carried, length

    int64_t place_scratch_float(view *of, char *block)
    int64_t place_scratch_double(view *of, char *block)
    void begin_float(view *views, int64_t count, gemm_float *gemm)
    void begin_double(view *views, int64_t count, gemm_double *gemm)
    double step_float(view *views, int64_t count, gemm_float *gemm, const double *a,
                      int64_t repeats, double epsilon, double floor, double ceiling)
    double step_double(view *views, int64_t count, gemm_double *gemm, const double *a,
                       int64_t repeats, double epsilon, double floor, double ceiling)
    void nearest_rows_float(int64_t n, int64_t k, const float *products, const double *squares,
                            double *distances, int64_t *nearest)
    void nearest_rows_double(int64_t n, int64_t k, const double *products, const double *squares,
                             double *distances, int64_t *nearest)
    int64_t c_choose_features "choose_features"(
        int64_t n, const float *squares, const double *scores, const int64_t *features,
        float *nearest, double *worth, double chance, double rounding, double rival_worth,
        int64_t rival, int64_t most, int64_t *taken)

ctypedef fused real:
    float
    double

ctypedef fused number:
    float
    double
    uint8_t
    int32_t
    int64_t

source_digest = SOURCE_DIGEST.decode()


cdef class BoundViews:
    """The views of a chunk, bound to the loops; keeps their arrays alive. See `CompiledIteration`.

    All have the precision of the first one's U, and share one consensus.
    """

    cdef view *views
    cdef double *weights
    cdef char *scratch
    cdef int64_t count
    cdef bint single
    cdef tuple owners

    def __cinit__(self, arrays):
        self.owners = tuple(arrays)
        self.count = len(self.owners)
        if not self.count:
            raise ValueError("there is no view to bind")
        self.single = self.owners[0].U.itemsize == sizeof(float)
        self.views = <view *> allocate(self.count * sizeof(view))
        self.weights = <double *> allocate(self.count * sizeof(double))
        cdef int64_t v
        for v in range(self.count):
            if self.owners[v].consensus is not self.owners[0].consensus:
                raise ValueError("the views have different consensus matrices")
            if self.single:
                bind_view(<float *> NULL, &self.views[v], self.owners[v])
            else:
                bind_view(<double *> NULL, &self.views[v], self.owners[v])
        self.scratch = <char *> allocate(self.place(NULL))
        self.place(self.scratch)
        with nogil:
            if self.single:
                begin_float(self.views, self.count, <gemm_float *> sgemm)
            else:
                begin_double(self.views, self.count, <gemm_double *> dgemm)

    def __dealloc__(self):
        PyMem_Free(self.views)
        PyMem_Free(self.weights)
        PyMem_Free(self.scratch)

    cdef int64_t place(self, char *block) noexcept:
        """Point the scratch of all views into a block, unless it is NULL; its size in bytes."""
        cdef int64_t used = 0, v
        for v in range(self.count):
            start = NULL if block == NULL else block + used
            if self.single:
                used += place_scratch_float(&self.views[v], start)
            else:
                used += place_scratch_double(&self.views[v], start)
        return used

    def step(self, weights, int64_t repeats, double epsilon, double floor, double ceiling):
        """Update V of every view, U of every view and U*; returns the regularisers of U."""
        if len(weights) != self.count:
            raise ValueError(f"weights: expected {self.count} numbers, got {len(weights)}")
        cdef int64_t v
        cdef double regularisers
        for v in range(self.count):
            self.weights[v] = weights[v]
        with nogil:
            if self.single:
                regularisers = step_float(self.views, self.count, <gemm_float *> sgemm,
                                          self.weights, repeats, epsilon, floor, ceiling)
            else:
                regularisers = step_double(self.views, self.count, <gemm_double *> dgemm,
                                           self.weights, repeats, epsilon, floor, ceiling)
        return regularisers

    def results(self):
        """Of every view: the losses of this and of earlier chunks less their energy; Σ‖V(i,:)‖."""
        return [
            (self.views[v].loss, self.views[v].carried, self.views[v].length)
            for v in range(self.count)
        ]


def nearest_rows(
    const real[:, ::1] products not None,
    const double[::1] squares not None,
    double[::1] distances not None,
    int64_t[:, ::1] nearest not None,
):
    """The k nearest of n rows, (n×k), into `nearest`; 1 ≤ k < n, `distances` (k) is scratch."""
    cdef int64_t n = products.shape[0], k = nearest.shape[1]
    check_shape("products", (products.shape[0], products.shape[1]), (n, n))
    check_shape("squares", (squares.shape[0],), (n,))
    check_shape("distances", (distances.shape[0],), (k,))
    check_shape("nearest", (nearest.shape[0], nearest.shape[1]), (n, k))
    if not 1 <= k < n:
        raise ValueError(f"nearest: expected 1 to {n - 1} columns, got {k}")
    with nogil:
        if real is float:
            nearest_rows_float(n, k, &products[0, 0], &squares[0], &distances[0], &nearest[0, 0])
        else:
            nearest_rows_double(n, k, &products[0, 0], &squares[0], &distances[0], &nearest[0, 0])


def choose_features(
    const float[:, ::1] squares not None,
    const double[::1] scores not None,
    const int64_t[::1] features not None,
    float[::1] nearest not None,
    double[::1] worth not None,
    double chance,
    double rounding,
    double rival_worth,
    int64_t rival,
    int64_t[::1] taken not None,
):
    """Positions of greedy choices among n features, into `taken`; returns how many there are.

    `nearest` and `worth` (n each) are overwritten.
    """
    cdef int64_t n = scores.shape[0], most = taken.shape[0], count
    check_shape("squares", (squares.shape[0], squares.shape[1]), (n, n))
    check_shape("features", (features.shape[0],), (n,))
    check_shape("nearest", (nearest.shape[0],), (n,))
    check_shape("worth", (worth.shape[0],), (n,))
    with nogil:
        count = c_choose_features(
            n, &squares[0, 0], &scores[0], &features[0], &nearest[0], &worth[0], chance, rounding,
            rival_worth, rival, most, &taken[0])
    return count


cdef int bind_view(real *like, view *of, arrays) except -1:
    """Check the arrays of one view (`ViewArrays`) and point to them; `like` gives the precision."""
    of.N, of.K = arrays.consensus.shape
    of.d, of.xi, of.eta = arrays.V.shape[1], arrays.xi, arrays.eta
    of.present = read_vector(<uint8_t *> NULL, "present", arrays.present, of.N)
    of.n = sum([of.present[i] != 0 for i in range(of.N)])
    bind_rows(like, of, arrays)
    bind_constants(like, of, arrays)
    of.V = write_matrix(like, "V", arrays.V, of.K, of.d)
    of.lengths = write_vector(like, "lengths", arrays.lengths, of.d)
    of.U = write_matrix(like, "U", arrays.U, of.N, 2 * of.K)
    of.products = write_matrix(like, "products", arrays.products, of.K, 2 * of.K)
    of.consensus = write_matrix(like, "consensus", arrays.consensus, of.N, of.K)
    return 0


cdef int bind_rows(real *like, view *of, arrays) except -1:
    if arrays.rows is not None:
        of.rows = read_matrix(like, "rows", arrays.rows, of.n, of.d)
        return 0
    stored = len(arrays.row_values)
    of.row_starts = read_vector(<int64_t *> NULL, "row_starts", arrays.row_starts, of.n + 1)
    of.row_columns = read_vector(<int32_t *> NULL, "row_columns", arrays.row_columns, stored)
    of.row_values = read_vector(like, "row_values", arrays.row_values, stored)
    if of.row_starts[of.n] > stored:
        raise ValueError(f"row_starts: ends at {of.row_starts[of.n]} of {stored} values")
    return 0


cdef int bind_constants(real *like, view *of, arrays) except -1:
    stored = len(arrays.theta_S)
    of.share = read_vector(like, "share", arrays.share, of.N)
    of.fit_weights = read_vector(like, "fit_weights", arrays.fit_weights, of.N)
    of.beta_W = read_vector(like, "beta_W", arrays.beta_W, of.N)
    of.diagonal = read_vector(like, "diagonal", arrays.diagonal, of.N)
    of.consensus_share = read_vector(like, "consensus_share", arrays.consensus_share, of.N)
    of.beta_W_total = read_vector(like, "beta_W_total", arrays.beta_W_total, of.N)
    of.theta_starts = read_vector(<int32_t *> NULL, "theta_starts", arrays.theta_starts, of.N + 1)
    of.theta_columns = read_vector(<int32_t *> NULL, "theta_columns", arrays.theta_columns, stored)
    of.theta_S = read_vector(like, "theta_S", arrays.theta_S, stored)
    if of.theta_starts[of.N] > stored:
        raise ValueError(f"theta_starts: ends at {of.theta_starts[of.N]} of {stored} values")
    of.R0 = read_matrix(<double *> NULL, "R0", arrays.R0, of.K, of.K)
    of.Q0 = read_matrix(like, "Q0", arrays.Q0, of.K, of.d)
    of.S0 = read_vector(like, "S0", arrays.S0, of.d)
    return 0


cdef const number *read_vector(number *like, str name, array, Py_ssize_t length) except? NULL:
    """The numbers of an array of this type and length."""
    cdef const number[::1] found
    try:
        found = array
    except (TypeError, ValueError) as error:
        raise type(error)(f"{name}: {error}") from None
    check_shape(name, (found.shape[0],), (length,))
    return &found[0]


cdef const real *read_matrix(
    real *like, str name, array, Py_ssize_t rows, Py_ssize_t columns
) except? NULL:
    """The numbers of a matrix of this type and shape."""
    cdef const real[:, ::1] found
    try:
        found = array
    except (TypeError, ValueError) as error:
        raise type(error)(f"{name}: {error}") from None
    check_shape(name, (found.shape[0], found.shape[1]), (rows, columns))
    return &found[0, 0]


cdef real *write_vector(real *like, str name, array, Py_ssize_t length) except? NULL:
    """Like `read_vector`, of an array that can be written."""
    cdef real[::1] found
    try:
        found = array
    except (TypeError, ValueError) as error:
        raise type(error)(f"{name}: {error}") from None
    check_shape(name, (found.shape[0],), (length,))
    return &found[0]


cdef real *write_matrix(
    real *like, str name, array, Py_ssize_t rows, Py_ssize_t columns
) except? NULL:
    """Like `read_matrix`, of a matrix that can be written."""
    cdef real[:, ::1] found
    try:
        found = array
    except (TypeError, ValueError) as error:
        raise type(error)(f"{name}: {error}") from None
    check_shape(name, (found.shape[0], found.shape[1]), (rows, columns))
    return &found[0, 0]


cdef int check_shape(str name, tuple found, tuple expected) except -1:
    if found != expected:
        raise ValueError(f"{name}: expected the shape {expected}, got {found}")
    return 0


cdef void *allocate(int64_t size) except NULL:
    """Zeros, which tracemalloc counts."""
    found = PyMem_Calloc(max(size, 1), 1)
    if found == NULL:
        raise MemoryError
    return found

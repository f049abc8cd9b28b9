/* The interface of the compiled loops. Every function ending in _float or _double is one source
 * compiled once per precision, with REAL as float or double; `void *` points to numbers of that
 * precision. _native.pyx checks types and shapes before a pointer gets here.
 */

#ifndef STREAM_FS_LOOPS_H
#define STREAM_FS_LOOPS_H

#include <stdint.h>

/* Two versions, chosen by the loader: for processors with vectors of 256 bits, and for all others. */
#if defined(__x86_64__) && defined(__GLIBC__)
#define CLONED __attribute__((target_clones("avx2", "default")))
#else
#define CLONED
#endif
#define INLINE static inline __attribute__((always_inline))

/* One view of a chunk. Matrices are stored by row; V, Q and what has their shape are transposed. */
struct view {
    int64_t N, n, d, K; /* rows, rows that have the view, features, clusters */
    double xi, eta;

    /* The present rows: n×d, or else (`rows` is NULL) in CSR. */
    const void *rows;
    const int64_t *row_starts;
    const int32_t *row_columns;
    const void *row_values;

    /* Constant during the iterations. */
    const uint8_t *present;               /* N */
    const void *share;                    /* N: c where the view is missing */
    const void *fit_weights;              /* N: W̃ of the first term */
    const void *beta_W, *diagonal;        /* N: βW̃, and βW̃ + θD */
    const void *consensus_share;          /* N: βW̃ over its sum over all views */
    const void *beta_W_total;             /* N: that sum */
    const int32_t *theta_starts, *theta_columns;
    const void *theta_S;                  /* θS, N×N in CSR */
    const double *R0;                     /* K×K */
    const void *Q0, *S0;                  /* K×d, d */

    /* The factors. */
    void *V, *lengths;                    /* K×d, and the row norms of Vᵀ, d */
    void *U;                              /* N×2K: U beside W̃U */
    void *products;                       /* K×2K: UᵀU beside UᵀW̃U */
    void *consensus;                      /* N×K, the same matrix for all views */

    /* Scratch, see `place_scratch`. */
    double *sums;                         /* 2K */
    void *Q, *VR, *transposed;            /* K×d; the last one d×K, for Q or V */
    void *penalties;                      /* d */
    void *R, *VtV;                        /* K×K */
    void *right;                          /* 2K×K: 2ξUᵀU over aVᵀV */
    void *left, *g;                       /* n×K: U_p + T_p; K */
    void *terms;                          /* (n+1)×K: S₀ᵀV, then the present rows of XV */
    void *XV, *G_fixed, *G_own, *P;       /* N×K; G is the numerator of the U step, P its denominator */
    void *prefix_sum;                     /* K */

    /* Results of a step. */
    double loss, carried; /* ‖W(X − UVᵀ)‖² less the energy: of this chunk, and of earlier ones */
    double regularisers;  /* this view's share of what `step` returns */
    double length;        /* Σ‖V(i,:)‖ */
};

/* A product of matrices as BLAS and SciPy declare it: C = αop(A)op(B) + βC, stored by column. */
#define DECLARE_GEMM(real) \
    typedef void gemm_##real(char *opA, char *opB, int *m, int *n, int *k, real *alpha, real *A, \
                             int *lda, real *B, int *ldb, real *beta, real *C, int *ldc);
DECLARE_GEMM(float)
DECLARE_GEMM(double)

/* `place_scratch` points the view's scratch into `block`, which has to hold zeros; it returns how
 * many bytes that takes, and with NULL only that.
 *
 * `begin` computes U*, and what the first step needs of U. `step` updates V of every view, U of
 * every view and U*, with `repeats` V and U steps; `a` is the weight of each view's first term. It
 * returns Σ_v β‖W(U − U*)‖² + θ tr(UᵀLU) + ξ‖UᵀU − I‖².
 *
 * `nearest_rows`: for each of n rows its k nearest, 1 ≤ k < n. `products` (n×n) are those of the
 * rows, `squares` (n) is their diagonal; `distances` (k) is scratch.
 */
#define DECLARE_LOOPS(real) \
    int64_t place_scratch_##real(struct view *of, char *block); \
    void begin_##real(struct view *views, int64_t count, gemm_##real *gemm); \
    double step_##real(struct view *views, int64_t count, gemm_##real *gemm, const double *a, \
                       int64_t repeats, double epsilon, double floor, double ceiling); \
    void nearest_rows_##real(int64_t n, int64_t k, const real *products, const double *squares, \
                             double *distances, int64_t *nearest);
DECLARE_LOOPS(float)
DECLARE_LOOPS(double)

/* Greedy choices among n features: their positions go to `taken`; returns how many there are.
 * `nearest` (cos² with the most similar choice) and `worth` (score · novelty, −1 of a chosen
 * feature), n each, are overwritten.
 */
int64_t choose_features(int64_t n, const float *squares, const double *scores,
                        const int64_t *features, float *nearest, double *worth, double chance,
                        double rounding, double rival_worth, int64_t rival, int64_t most,
                        int64_t *taken);

/* The name of a function that is compiled once per precision. */
#define JOIN(name, real) name##_##real
#define EXPAND(name, real) JOIN(name, real)
#define NAME(name) EXPAND(name, REAL)

#endif

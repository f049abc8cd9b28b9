/* A turn over matrices that are too small for numpy to be quick with.
 *
 * `begin` and `turn` are for all views of a chunk, and do what turns.py does, where it is explained;
 * products of dense matrices are left to BLAS, which compiled.py hands in. Matrices lie row by row; V
 * and Q lie by column, that is as K×d. Compiled once for each precision, with REAL as float or
 * double.
 */

#include <stdint.h>
#include <string.h>
#include <tgmath.h>

/* Compiled twice, where the loader can choose: for processors with vectors of 256 bits, and for all.
 */
#if defined(__x86_64__) && defined(__GLIBC__)
#define EXPORTED __attribute__((target_clones("avx2", "default")))
#else
#define EXPORTED
#endif
#define INLINE static inline __attribute__((always_inline))

enum { WIDTH = 8 }; /* columns that are summed at a time */
enum { SMALL = 1000000 }; /* see arrays.py */

/* A step for all columns: for `width` of them, a constant, from `first` on. */
#define BY_COLUMNS(K, step) \
    do { \
        int64_t first = 0; \
        for (; first + WIDTH <= (K); first += WIDTH) { enum { width = WIDTH }; step; } \
        for (; first + 4 <= (K); first += 4) { enum { width = 4 }; step; } \
        for (; first + 2 <= (K); first += 2) { enum { width = 2 }; step; } \
        for (; first < (K); first++) { enum { width = 1 }; step; } \
    } while (0)

/* Digest of what the library was made of: one that is older than its source is not used. */
const char source[] = SOURCE;

/* BLAS: C = op(A)op(B), with matrices that lie column by column. */
typedef void gemm_t(const char *opA, const char *opB, const int *m, const int *n, const int *k,
                    const REAL *alpha, const REAL *A, const int *lda, const REAL *B, const int *ldb,
                    const REAL *beta, REAL *C, const int *ldc);

struct view {
    int64_t N, n, d, K;              /* rows, those that have the view, features, clusters */
    double xi, eta;
    const REAL *rows;                /* n×d; or else in CSR: */
    const int64_t *row_starts;
    const int32_t *row_columns;
    const REAL *row_values;
    const uint8_t *present;          /* N */
    const REAL *share;               /* N: c where the view is missing */
    const REAL *fit, *pull, *still;  /* N: W̃, βW̃ and βW̃ + θD */
    const REAL *part, *norm;         /* N: βW̃ over its sum of all views, and that sum */
    const int32_t *starts, *columns; /* θS, in CSR */
    const REAL *springs;
    const double *R0;                /* K×K */
    const REAL *Q0, *S0;             /* K×d, d */
    REAL *V, *Q, *VR, *across;       /* K×d; `across` lies the other way, for V or Q */
    REAL *lengths, *penalties;       /* d */
    REAL *R, *VtV;                   /* K×K */
    REAL *products, *right;          /* K×2K: UᵀU beside UᵀW̃U; 2K×K: 2ξUᵀU over aVᵀV */
    REAL *both;                      /* N×2K: U beside W̃U */
    REAL *left, *g;                  /* n×K: U_p + T_p; K */
    REAL *terms;                     /* (n+1)×K: S₀ᵀV, then the present rows of XV */
    REAL *XV, *driving, *P, *pulled; /* N×K */
    REAL *sum;                       /* K, on the way */
    double *sums;                    /* 2K, on the way */
    REAL *consensus;                 /* N×K, the same for all views */
    double loss, carried;            /* ‖W(X − UVᵀ)‖² less the energy: of this chunk, of before */
    double apart, length;            /* this view's share of `agree`; Σ‖V(i,:)‖ */
};

/* C = op(A)op(B) of matrices that lie row by row, (m×n) by a sum of k terms. A row of A, B and C is
 * that many numbers behind the one before. */
INLINE void multiply(gemm_t *gemm, char opA, char opB, int m, int n, int k, const REAL *A, int lda,
                     const REAL *B, int ldb, REAL *C, int ldc)
{
    const REAL one = 1, zero = 0;
    gemm(&opB, &opA, &n, &m, &k, &one, B, &ldb, A, &lda, &zero, C, &ldc);
}

/* B = Aᵀ for an A of m×n. */
INLINE void transpose(const REAL *A, int64_t m, int64_t n, REAL *restrict B)
{
    for (int64_t j = 0; j < n; j++)
        for (int64_t i = 0; i < m; i++) B[m * j + i] = A[n * i + j];
}

/* Xᵀ(U_p + T_p), as K×d. */
INLINE void cross(struct view *of, gemm_t *gemm)
{
    const int64_t d = of->d, K = of->K;
    if (of->rows != NULL) {
        multiply(gemm, 'T', 'N', K, d, of->n, of->left, K, of->rows, d, of->Q, d);
        return;
    }
    memset(of->across, 0, sizeof(REAL) * d * K);
    for (int64_t i = 0; i < of->n; i++) {
        const REAL *left = of->left + K * i;
        for (int64_t e = of->row_starts[i]; e < of->row_starts[i + 1]; e++) {
            REAL *restrict sum = of->across + K * of->row_columns[e];
            const REAL value = of->row_values[e];
            for (int64_t k = 0; k < K; k++) sum[k] += value * left[k];
        }
    }
    transpose(of->across, d, K, of->Q);
}

/* The present rows of XV from CSR, `width` columns of them from `first` on; V is `across`. */
INLINE void gather(const struct view *of, int64_t first, const int width)
{
    const int64_t K = of->K;
    for (int64_t i = 0; i < of->n; i++) {
        REAL sum[WIDTH] = {0};
        for (int64_t e = of->row_starts[i]; e < of->row_starts[i + 1]; e++) {
            const REAL *V = of->across + K * of->row_columns[e] + first, value = of->row_values[e];
            for (int k = 0; k < width; k++) sum[k] += value * V[k];
        }
        for (int k = 0; k < width; k++) of->terms[K * (i + 1) + first + k] = sum[k];
    }
}

/* S₀ᵀV and the present rows of XV; VᵀV. */
INLINE void times(struct view *of, gemm_t *gemm)
{
    const int64_t d = of->d, K = of->K, n = of->n;
    multiply(gemm, 'N', 'T', K, K, d, of->V, d, of->V, d, of->VtV, K);
    multiply(gemm, 'N', 'T', 1, K, d, of->S0, d, of->V, d, of->terms, K);
    if (of->rows == NULL) {
        transpose(of->V, K, d, of->across);
        BY_COLUMNS(K, gather(of, first, width));
    } else if (n * d * K <= SMALL) {
        transpose(of->V, K, d, of->across);
        multiply(gemm, 'N', 'N', n, K, d, of->rows, d, of->across, K, of->terms + K, K);
    } else {
        multiply(gemm, 'N', 'T', n, K, d, of->rows, d, of->V, d, of->terms + K, K);
    }
}

/* U_p + T_p and g, from the last row up. */
INLINE void spread(struct view *of)
{
    const int64_t K = of->K;
    REAL *restrict g = of->g;
    REAL *restrict left = of->left + K * of->n;
    for (int64_t k = 0; k < K; k++) g[k] = 0;
    for (int64_t i = of->N - 1; i >= 0; i--) {
        const REAL *u = of->both + 2 * K * i, c = of->share[i];
        if (of->present[i]) {
            left -= K;
            for (int64_t k = 0; k < K; k++) left[k] = u[k] + g[k];
        } else {
            for (int64_t k = 0; k < K; k++) g[k] += c * u[k];
        }
    }
}

/* Q gains Q₀ + S₀gᵀ, of R the same (Eq. 11). */
INLINE void carry(struct view *of)
{
    const int64_t d = of->d, K = of->K;
    for (int64_t k = 0; k < K; k++) {
        REAL *restrict Q = of->Q + d * k;
        const REAL *Q0 = of->Q0 + d * k, *S0 = of->S0, g = of->g[k];
        for (int64_t i = 0; i < d; i++) Q[i] += Q0[i] + g * S0[i];
        for (int64_t l = 0; l < K; l++)
            of->R[K * k + l] = of->R0[K * k + l] + of->products[2 * K * k + K + l];
    }
}

/* V ← V ∘ sqrt(Q / (VR + pHV)), p = η/2a (Eq. 12) */
INLINE void v_step(struct view *of, double p, double epsilon, double floor)
{
    const int64_t d = of->d, K = of->K;
    const REAL weight = p, apart = epsilon, least = floor;
    REAL *restrict lengths = of->lengths, *restrict penalties = of->penalties;
    double carried = 0, length = 0;
    for (int64_t i = 0; i < d; i++) {
        penalties[i] = weight / (lengths[i] + apart);
        lengths[i] = 0;
    }
    for (int64_t k = 0; k < K; k++) {
        REAL *restrict V = of->V + d * k;
        const REAL *Q = of->Q + d * k, *Q0 = of->Q0 + d * k, *VR = of->VR + d * k;
#pragma omp simd reduction(+ : carried)
        for (int64_t i = 0; i < d; i++) {
            const REAL v = V[i] * sqrt(Q[i] / (VR[i] + V[i] * penalties[i] + least));
            V[i] = v;
            lengths[i] += v * v;
            carried += v * Q0[i];
        }
    }
#pragma omp simd reduction(+ : length)
    for (int64_t i = 0; i < d; i++) {
        lengths[i] = sqrt(lengths[i]);
        length += lengths[i];
    }
    of->carried = -2 * carried;
    of->length = length;
}

/* W̃XV with its missing rows, aW̃XV + βW̃U*, and aVᵀV. */
INLINE void drive(struct view *of, double weight)
{
    const int64_t K = of->K;
    const REAL a = weight, *term = of->terms;
    REAL *restrict sum = of->sum;
    for (int64_t k = 0; k < K; k++) sum[k] = term[k];
    for (int64_t i = 0; i < of->N; i++) {
        REAL *restrict XV = of->XV + K * i, *restrict driving = of->driving + K * i;
        const REAL *consensus = of->consensus + K * i, pull = of->pull[i], c = of->share[i];
        if (of->present[i]) {
            term += K;
            for (int64_t k = 0; k < K; k++) sum[k] += XV[k] = term[k];
        } else {
            for (int64_t k = 0; k < K; k++) XV[k] = c * sum[k];
        }
        for (int64_t k = 0; k < K; k++) driving[k] = a * XV[k] + pull * consensus[k];
    }
    for (int64_t k = 0; k < K * K; k++) {
        of->carried += of->VtV[k] * of->R0[k];
        of->right[K * K + k] = a * of->VtV[k];
    }
}

/* θSU + 2ξU, `width` columns of it from `first` on: sums that stay in registers. */
INLINE void pull(const struct view *of, int64_t first, const int width)
{
    const int64_t K = of->K;
    const REAL twice = 2 * of->xi;
    for (int64_t i = 0; i < of->N; i++) {
        const REAL *own = of->both + 2 * K * i + first;
        REAL sum[WIDTH];
        for (int k = 0; k < width; k++) sum[k] = twice * own[k];
        for (int32_t e = of->starts[i]; e < of->starts[i + 1]; e++) {
            const REAL *other = of->both + 2 * K * of->columns[e] + first, spring = of->springs[e];
            for (int k = 0; k < width; k++) sum[k] += spring * other[k];
        }
        for (int k = 0; k < width; k++) of->pulled[K * i + first + k] = sum[k];
    }
}

/* W̃U, θSU + 2ξU, and what the objective needs of them. */
INLINE void hold(struct view *of)
{
    const int64_t K = of->K;
    double *restrict fitted = of->sums, *restrict tension = of->sums + K;
    for (int64_t k = 0; k < K; k++) fitted[k] = tension[k] = 0;
    BY_COLUMNS(K, pull(of, first, width));
    for (int64_t i = 0; i < of->N; i++) {
        REAL *restrict u = of->both + 2 * K * i;
        const REAL *restrict pulled = of->pulled + K * i;
        const REAL *XV = of->XV + K * i, fit = of->fit[i], still = of->still[i];
        for (int64_t k = 0; k < K; k++) {
            u[K + k] = fit * u[k];
            fitted[k] += XV[k] * u[k];
            tension[k] += u[k] * (still * u[k] - pulled[k]);
        }
    }
    of->loss = of->apart = 0;
    for (int64_t k = 0; k < K; k++) {
        of->loss -= 2 * fitted[k];
        of->apart += tension[k];
    }
}

/* U ← U ∘ sqrt(G / P) (Eq. 15), of which P has aW̃UVᵀV + 2ξUUᵀU. */
INLINE void u_step(struct view *of, double floor)
{
    const int64_t K = of->K;
    const REAL least = floor;
    for (int64_t i = 0; i < of->N; i++) {
        REAL *restrict u = of->both + 2 * K * i;
        const REAL *driving = of->driving + K * i, *pulled = of->pulled + K * i;
        const REAL *P = of->P + K * i, still = of->still[i];
        for (int64_t k = 0; k < K; k++)
            u[k] *= sqrt((driving[k] + pulled[k]) / (P[k] + still * u[k] + least));
    }
}

/* ⟨VᵀV, UᵀW̃U⟩ and, with the −2ξ‖U‖² that is in the tension, ξ‖UᵀU − I‖²; 2ξUᵀU for the next step. */
INLINE void square(struct view *of)
{
    const int64_t K = of->K;
    double fourth = 0, inner = 0;
    for (int64_t k = 0; k < K; k++) {
        const REAL *own = of->products + 2 * K * k, *VtV = of->VtV + K * k;
        for (int64_t l = 0; l < K; l++) {
            fourth += (double)own[l] * own[l];
            inner += (double)VtV[l] * own[K + l];
            of->right[K * k + l] = 2 * of->xi * own[l];
        }
    }
    of->loss += inner;
    of->apart += of->xi * (fourth + K);
}

/* UᵀU beside UᵀW̃U, and what follows from them. */
INLINE void settle(struct view *of, gemm_t *gemm)
{
    const int64_t K = of->K;
    hold(of);
    multiply(gemm, 'T', 'N', K, 2 * K, of->N, of->both, 2 * K, of->both, 2 * K, of->products, 2 * K);
    square(of);
}

#define EACH_VIEW for (struct view *of = views; of < views + count; of++)

/* U* = Σ βW̃U / Σ βW̃ (Eq. 20), `width` columns of it from `first` on; the sum of its squares. */
INLINE double meet(struct view *views, int64_t count, int64_t first, const int width)
{
    const int64_t K = views->K;
    double squared[WIDTH] = {0}, sum = 0;
    for (int64_t i = 0; i < views->N; i++) {
        REAL mean[WIDTH] = {0};
        EACH_VIEW {
            const REAL *u = of->both + 2 * K * i + first, part = of->part[i];
            for (int k = 0; k < width; k++) mean[k] += part * u[k];
        }
        for (int k = 0; k < width; k++) {
            views->consensus[K * i + first + k] = mean[k];
            squared[k] += views->norm[i] * mean[k] * mean[k];
        }
    }
    for (int k = 0; k < width; k++) sum += squared[k];
    return sum;
}

/* U*; Σ_v β‖W(U − U*)‖² + θ tr(UᵀLU) + ξ‖UᵀU − I‖² */
INLINE double agree(struct view *views, int64_t count)
{
    double apart = 0;
    EACH_VIEW apart += of->apart;
    BY_COLUMNS(views->K, apart -= meet(views, count, first, width));
    return apart;
}

/* What the first turn needs of U. */
EXPORTED void begin(struct view *views, int64_t count, gemm_t *gemm)
{
    EACH_VIEW settle(of, gemm);
    agree(views, count);
}

/* V of every view, U of every view, U*; `repeats` V and U steps, `a` the weight of each view's first
 * term. Returns what `agree` does. */
EXPORTED double turn(struct view *views, int64_t count, gemm_t *gemm, const double *a,
                     int64_t repeats, double epsilon, double floor, double ceiling)
{
    EACH_VIEW {
        const int64_t d = of->d, K = of->K;
        const double weight = a[of - views], penalty = fmin(of->eta / (2 * weight), ceiling);
        spread(of);
        cross(of, gemm);
        carry(of);
        for (int64_t n = 0; n < repeats; n++) {
            multiply(gemm, 'T', 'N', K, d, K, of->R, K, of->V, d, of->VR, d);
            v_step(of, penalty, epsilon, floor);
        }
        times(of, gemm);
        drive(of, weight);
        for (int64_t n = 0; n < repeats; n++) {
            multiply(gemm, 'N', 'N', of->N, K, 2 * K, of->both, 2 * K, of->right, K, of->P, K);
            u_step(of, floor);
            settle(of, gemm);
        }
    }
    return agree(views, count);
}

/* The steps of an iteration, for matrices that are too small for NumPy to be quick with.
 *
 * `begin` and `step` compute what fallback.py does, where it is explained; products of dense
 * matrices are left to BLAS.
 */

#include "loops.h"

#include <string.h>
#include <tgmath.h>

enum { WIDTH = 8 };           /* columns that are summed at a time */
enum { ALIGNMENT = 64 };      /* bytes */
enum { SMALL = 1000000 };     /* see arrays.py */

/* A step for all columns: for `width` of them, a constant, from `first` on. */
#define BY_COLUMNS(K, step) \
    do { \
        int64_t first = 0; \
        for (; first + WIDTH <= (K); first += WIDTH) { enum { width = WIDTH }; step; } \
        for (; first + 4 <= (K); first += 4) { enum { width = 4 }; step; } \
        for (; first + 2 <= (K); first += 2) { enum { width = 2 }; step; } \
        for (; first < (K); first++) { enum { width = 1 }; step; } \
    } while (0)

#define EACH_VIEW for (struct view *of = views; of < views + count; of++)

/* Row i of a matrix whose rows have that many numbers. */
#define ROW(matrix, i, width) ((REAL *)(matrix) + (width) * (i))

typedef NAME(gemm) gemm_t;

/* C = op(A)op(B) of matrices that are stored by row, (m×n) by a sum of k terms. A row of A, B and C
 * is that many numbers behind the one before.
 */
INLINE void multiply(gemm_t *gemm, char opA, char opB, int m, int n, int k, const REAL *A, int lda,
                     const REAL *B, int ldb, REAL *C, int ldc)
{
    REAL one = 1, zero = 0;
    gemm(&opB, &opA, &n, &m, &k, &one, (REAL *)B, &ldb, (REAL *)A, &lda, &zero, C, &ldc);
}

/* B = Aᵀ for an A of m×n. */
INLINE void transpose(const REAL *A, int64_t m, int64_t n, REAL *restrict B)
{
    for (int64_t j = 0; j < n; j++)
        for (int64_t i = 0; i < m; i++) B[m * j + i] = A[n * i + j];
}

/* U_p + T_p and g: each present row of U with the weighted missing rows after it, and their sum. */
INLINE void impute(struct view *of)
{
    const int64_t K = of->K;
    const REAL *share = of->share;
    REAL *restrict g = of->g;
    REAL *restrict left = ROW(of->left, of->n, K);
    for (int64_t k = 0; k < K; k++) g[k] = 0;
    for (int64_t i = of->N - 1; i >= 0; i--) {
        const REAL *u = ROW(of->U, i, 2 * K), c = share[i];
        if (of->present[i]) {
            left -= K;
            for (int64_t k = 0; k < K; k++) left[k] = u[k] + g[k];
        } else {
            for (int64_t k = 0; k < K; k++) g[k] += c * u[k];
        }
    }
}

/* Q = Xᵀ(U_p + T_p) from CSR. */
INLINE void transposed_product_csr(struct view *of)
{
    const int64_t d = of->d, K = of->K;
    const REAL *values = of->row_values;
    memset(of->transposed, 0, sizeof(REAL) * d * K);
    for (int64_t i = 0; i < of->n; i++) {
        const REAL *left = ROW(of->left, i, K);
        for (int64_t e = of->row_starts[i]; e < of->row_starts[i + 1]; e++) {
            REAL *restrict sum = ROW(of->transposed, of->row_columns[e], K);
            const REAL value = values[e];
            for (int64_t k = 0; k < K; k++) sum[k] += value * left[k];
        }
    }
    transpose(of->transposed, d, K, of->Q);
}

/* Q = Xᵀ(U_p + T_p) */
INLINE void transposed_product(struct view *of, gemm_t *gemm)
{
    if (of->rows == NULL) {
        transposed_product_csr(of);
        return;
    }
    multiply(gemm, 'T', 'N', of->K, of->d, of->n, of->left, of->K, of->rows, of->d, of->Q, of->d);
}

/* Q gains Q₀ + S₀gᵀ; R = R₀ + UᵀW̃U (Eq. 11). */
INLINE void add_carried(struct view *of)
{
    const int64_t d = of->d, K = of->K;
    const REAL *S0 = of->S0;
    for (int64_t k = 0; k < K; k++) {
        REAL *restrict Q = ROW(of->Q, k, d), *restrict R = ROW(of->R, k, K);
        const REAL *Q0 = ROW(of->Q0, k, d), *UtWU = ROW(of->products, k, 2 * K) + K;
        const REAL g = ((const REAL *)of->g)[k];
        for (int64_t i = 0; i < d; i++) Q[i] += Q0[i] + g * S0[i];
        for (int64_t l = 0; l < K; l++) R[l] = of->R0[K * k + l] + UtWU[l];
    }
}

/* V ← V ∘ sqrt(Q / (VR + pHV)), p = η/2a (Eq. 12) */
INLINE void v_step(struct view *of, double p, double epsilon, double floor)
{
    const int64_t d = of->d, K = of->K;
    const REAL weight = p, least_length = epsilon, least = floor;
    REAL *restrict lengths = of->lengths, *restrict penalties = of->penalties;
    double carried = 0, length = 0;
    for (int64_t i = 0; i < d; i++) {
        penalties[i] = weight / (lengths[i] + least_length);
        lengths[i] = 0;
    }
    for (int64_t k = 0; k < K; k++) {
        REAL *restrict V = ROW(of->V, k, d);
        const REAL *Q = ROW(of->Q, k, d), *Q0 = ROW(of->Q0, k, d), *VR = ROW(of->VR, k, d);
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

/* The present rows of XV from CSR, `width` columns of them from `first` on; Vᵀ is in `transposed`. */
INLINE void product_csr(const struct view *of, int64_t first, const int width)
{
    const int64_t K = of->K;
    const REAL *values = of->row_values;
    for (int64_t i = 0; i < of->n; i++) {
        REAL sum[WIDTH] = {0}, *term = ROW(of->terms, i + 1, K) + first;
        for (int64_t e = of->row_starts[i]; e < of->row_starts[i + 1]; e++) {
            const REAL *V = ROW(of->transposed, of->row_columns[e], K) + first, value = values[e];
            for (int k = 0; k < width; k++) sum[k] += value * V[k];
        }
        for (int k = 0; k < width; k++) term[k] = sum[k];
    }
}

/* S₀ᵀV and the present rows of XV; VᵀV. */
INLINE void products_with_V(struct view *of, gemm_t *gemm)
{
    const int64_t d = of->d, K = of->K, n = of->n;
    REAL *present = ROW(of->terms, 1, K);
    multiply(gemm, 'N', 'T', K, K, d, of->V, d, of->V, d, of->VtV, K);
    multiply(gemm, 'N', 'T', 1, K, d, of->S0, d, of->V, d, of->terms, K);
    if (of->rows == NULL) {
        transpose(of->V, K, d, of->transposed);
        BY_COLUMNS(K, product_csr(of, first, width));
    } else if (n * d * K <= SMALL) {
        transpose(of->V, K, d, of->transposed);
        multiply(gemm, 'N', 'N', n, K, d, of->rows, d, of->transposed, K, present, K);
    } else {
        multiply(gemm, 'N', 'T', n, K, d, of->rows, d, of->V, d, present, K);
    }
}

/* W̃XV with its missing rows; the part of G that does not depend on U, aW̃XV + βW̃U*. */
INLINE void fixed_numerator(struct view *of, REAL a)
{
    const int64_t K = of->K;
    const REAL *share = of->share, *beta_W = of->beta_W, *term = of->terms;
    REAL *restrict sum = of->prefix_sum;
    for (int64_t k = 0; k < K; k++) sum[k] = term[k];
    for (int64_t i = 0; i < of->N; i++) {
        REAL *restrict XV = ROW(of->XV, i, K), *restrict G = ROW(of->G_fixed, i, K);
        const REAL *consensus = ROW(of->consensus, i, K), beta = beta_W[i], c = share[i];
        if (of->present[i]) {
            term += K;
            for (int64_t k = 0; k < K; k++) sum[k] += XV[k] = term[k];
        } else {
            for (int64_t k = 0; k < K; k++) XV[k] = c * sum[k];
        }
        for (int64_t k = 0; k < K; k++) G[k] = a * XV[k] + beta * consensus[k];
    }
}

/* aVᵀV for the next U step, and ⟨VᵀV, R₀⟩. */
INLINE void weigh_VtV(struct view *of, REAL a)
{
    const int64_t K = of->K;
    const REAL *VtV = of->VtV;
    REAL *restrict aVtV = ROW(of->right, K, K);
    for (int64_t k = 0; k < K * K; k++) {
        of->carried += VtV[k] * of->R0[k];
        aVtV[k] = a * VtV[k];
    }
}

/* θSU + 2ξU, `width` columns of it from `first` on: sums that stay in registers. */
INLINE void own_numerator(const struct view *of, int64_t first, const int width)
{
    const int64_t K = of->K;
    const REAL twice = 2 * of->xi, *theta_S = of->theta_S;
    for (int64_t i = 0; i < of->N; i++) {
        const REAL *own = ROW(of->U, i, 2 * K) + first;
        REAL sum[WIDTH], *G = ROW(of->G_own, i, K) + first;
        for (int k = 0; k < width; k++) sum[k] = twice * own[k];
        for (int32_t e = of->theta_starts[i]; e < of->theta_starts[i + 1]; e++) {
            const REAL *other = ROW(of->U, of->theta_columns[e], 2 * K) + first;
            const REAL weight = theta_S[e];
            for (int k = 0; k < width; k++) sum[k] += weight * other[k];
        }
        for (int k = 0; k < width; k++) G[k] = sum[k];
    }
}

/* W̃U, θSU + 2ξU, and the sums over U that the objective needs. */
INLINE void u_products(struct view *of)
{
    const int64_t K = of->K;
    const REAL *fit_weights = of->fit_weights, *diagonals = of->diagonal;
    double *restrict fitted = of->sums, *restrict tension = of->sums + K;
    for (int64_t k = 0; k < K; k++) fitted[k] = tension[k] = 0;
    BY_COLUMNS(K, own_numerator(of, first, width));
    for (int64_t i = 0; i < of->N; i++) {
        REAL *restrict u = ROW(of->U, i, 2 * K);
        const REAL *restrict G = ROW(of->G_own, i, K);
        const REAL *XV = ROW(of->XV, i, K), fit = fit_weights[i], diagonal = diagonals[i];
        for (int64_t k = 0; k < K; k++) {
            u[K + k] = fit * u[k];
            fitted[k] += XV[k] * u[k];
            tension[k] += u[k] * (diagonal * u[k] - G[k]);
        }
    }
    of->loss = of->regularisers = 0;
    for (int64_t k = 0; k < K; k++) {
        of->loss -= 2 * fitted[k];
        of->regularisers += tension[k];
    }
}

/* U ← U ∘ sqrt(G / P) (Eq. 15), of which P has aW̃UVᵀV + 2ξUUᵀU. */
INLINE void u_step(struct view *of, double floor)
{
    const int64_t K = of->K;
    const REAL least = floor, *diagonals = of->diagonal;
    for (int64_t i = 0; i < of->N; i++) {
        REAL *restrict u = ROW(of->U, i, 2 * K);
        const REAL *fixed = ROW(of->G_fixed, i, K), *own = ROW(of->G_own, i, K);
        const REAL *P = ROW(of->P, i, K), diagonal = diagonals[i];
        for (int64_t k = 0; k < K; k++)
            u[k] *= sqrt((fixed[k] + own[k]) / (P[k] + diagonal * u[k] + least));
    }
}

/* ⟨VᵀV, UᵀW̃U⟩ and, with the −2ξ‖U‖² that `u_products` has added, ξ‖UᵀU − I‖²; 2ξUᵀU for the next
 * U step.
 */
INLINE void square_terms(struct view *of)
{
    const int64_t K = of->K;
    double fourth = 0, fitted = 0;
    for (int64_t k = 0; k < K; k++) {
        const REAL *UtU = ROW(of->products, k, 2 * K), *VtV = ROW(of->VtV, k, K);
        REAL *right = ROW(of->right, k, K);
        for (int64_t l = 0; l < K; l++) {
            fourth += (double)UtU[l] * UtU[l];
            fitted += (double)VtV[l] * UtU[K + l];
            right[l] = 2 * of->xi * UtU[l];
        }
    }
    of->loss += fitted;
    of->regularisers += of->xi * (fourth + K);
}

/* UᵀU beside UᵀW̃U, and all that the next U step and the objective need of U. */
INLINE void u_terms(struct view *of, gemm_t *gemm)
{
    const int64_t K = of->K;
    u_products(of);
    multiply(gemm, 'T', 'N', K, 2 * K, of->N, of->U, 2 * K, of->U, 2 * K, of->products, 2 * K);
    square_terms(of);
}

/* U* = Σ βW̃U / Σ βW̃ (Eq. 20), `width` columns of it from `first` on; the sum of its squares. */
INLINE double consensus_rows(struct view *views, int64_t count, int64_t first, const int width)
{
    const int64_t K = views->K;
    const REAL *total = views->beta_W_total;
    double squared[WIDTH] = {0}, sum = 0;
    for (int64_t i = 0; i < views->N; i++) {
        REAL mean[WIDTH] = {0}, *consensus = ROW(views->consensus, i, K) + first;
        EACH_VIEW {
            const REAL *u = ROW(of->U, i, 2 * K) + first;
            const REAL share = ((const REAL *)of->consensus_share)[i];
            for (int k = 0; k < width; k++) mean[k] += share * u[k];
        }
        for (int k = 0; k < width; k++) {
            consensus[k] = mean[k];
            squared[k] += total[i] * mean[k] * mean[k];
        }
    }
    for (int k = 0; k < width; k++) sum += squared[k];
    return sum;
}

/* U*; Σ_v β‖W(U − U*)‖² + θ tr(UᵀLU) + ξ‖UᵀU − I‖² */
INLINE double consensus_step(struct view *views, int64_t count)
{
    double regularisers = 0;
    EACH_VIEW regularisers += of->regularisers;
    BY_COLUMNS(views->K, regularisers -= consensus_rows(views, count, first, width));
    return regularisers;
}

INLINE void update_V(struct view *of, gemm_t *gemm, int64_t repeats, double p, double epsilon,
                     double floor)
{
    const int64_t d = of->d, K = of->K;
    impute(of);
    transposed_product(of, gemm);
    add_carried(of);
    for (int64_t i = 0; i < repeats; i++) {
        multiply(gemm, 'T', 'N', K, d, K, of->R, K, of->V, d, of->VR, d);
        v_step(of, p, epsilon, floor);
    }
}

INLINE void update_U(struct view *of, gemm_t *gemm, int64_t repeats, double a, double floor)
{
    const int64_t K = of->K;
    products_with_V(of, gemm);
    fixed_numerator(of, a);
    weigh_VtV(of, a);
    for (int64_t i = 0; i < repeats; i++) {
        multiply(gemm, 'N', 'N', of->N, K, 2 * K, of->U, 2 * K, of->right, K, of->P, K);
        u_step(of, floor);
        u_terms(of, gemm);
    }
}

CLONED void NAME(begin)(struct view *views, int64_t count, gemm_t *gemm)
{
    EACH_VIEW u_terms(of, gemm);
    consensus_step(views, count);
}

CLONED double NAME(step)(struct view *views, int64_t count, gemm_t *gemm, const double *a,
                         int64_t repeats, double epsilon, double floor, double ceiling)
{
    EACH_VIEW {
        const double weight = a[of - views], p = fmin(of->eta / (2 * weight), ceiling);
        update_V(of, gemm, repeats, p, epsilon, floor);
        update_U(of, gemm, repeats, weight, floor);
    }
    return consensus_step(views, count);
}

/* The next matrix of so many bytes in a block, of which `used` are taken; NULL without a block. */
static void *place(char *block, int64_t *used, int64_t size)
{
    void *found = block == NULL ? NULL : block + *used;
    *used += (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    return found;
}

int64_t NAME(place_scratch)(struct view *of, char *block)
{
    const int64_t N = of->N, n = of->n, d = of->d, K = of->K, size = sizeof(REAL);
    int64_t used = 0;
    of->sums = place(block, &used, sizeof(double) * 2 * K);
    void **const by_feature[] = {&of->Q, &of->VR, &of->transposed};
    for (int i = 0; i < 3; i++) *by_feature[i] = place(block, &used, size * K * d);
    of->penalties = place(block, &used, size * d);
    of->R = place(block, &used, size * K * K);
    of->VtV = place(block, &used, size * K * K);
    of->right = place(block, &used, size * 2 * K * K);
    of->left = place(block, &used, size * n * K);
    of->g = place(block, &used, size * K);
    of->terms = place(block, &used, size * (n + 1) * K);
    void **const by_row[] = {&of->XV, &of->G_fixed, &of->G_own, &of->P};
    for (int i = 0; i < 4; i++) *by_row[i] = place(block, &used, size * N * K);
    of->prefix_sum = place(block, &used, size * K);
    return used;
}

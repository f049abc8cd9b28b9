/* The search of nearest.py, where it is explained: every row of the products is read once.
 *
 * Distances by the same operations in the same order as numpy's, so that both find the same rows.
 * Compiled once for each precision, with REAL as float or double.
 */

#include <math.h>
#include <stdint.h>

#if defined(__x86_64__) && defined(__GLIBC__)
#define EXPORTED __attribute__((target_clones("avx2", "default")))
#else
#define EXPORTED
#endif
#define INLINE static inline __attribute__((always_inline))

/* Digest of what the library was made of: one that is older than its source is not used. */
const char source[] = SOURCE;

enum { GROUP = 16 }; /* rows that are looked at together, and mostly passed over */

/* The nearest so far, by distance and, among equals, in the order in which they were met. */
struct found {
    int64_t k, count;
    double *distances;
    int64_t *rows;
};

static void insert(struct found *found, double distance, int64_t row)
{
    int64_t place = found->count < found->k ? found->count++ : found->k - 1;
    for (; place > 0 && distance < found->distances[place - 1]; place--) {
        found->distances[place] = found->distances[place - 1];
        found->rows[place] = found->rows[place - 1];
    }
    found->distances[place] = distance;
    found->rows[place] = row;
}

/* Distances of a row to some others, `count` of them, and the least. */
INLINE double measure(int count, double own, const double *squares, const REAL *products,
                      double *distances)
{
    double least = INFINITY;
#pragma omp simd reduction(min : least)
    for (int i = 0; i < count; i++) {
        const double squared = own + squares[i] - (double)products[i] - (double)products[i];
        distances[i] = squared < 0 ? 0 : squared; /* by rounding */
        least = distances[i] < least ? distances[i] : least;
    }
    return least;
}

INLINE void look_through(struct found *found, double own, const double *squares,
                         const REAL *products, int64_t first, int64_t last)
{
    double distances[GROUP];
    for (; first < last; first += GROUP) {
        const int full = last - first >= GROUP, count = full ? GROUP : (int)(last - first);
        const double least =
            full ? measure(GROUP, own, squares + first, products + first, distances)
                 : measure(count, own, squares + first, products + first, distances);
        if (found->count == found->k && !(least < found->distances[found->k - 1])) continue;
        for (int i = 0; i < count; i++)
            if (found->count < found->k || distances[i] < found->distances[found->k - 1])
                insert(found, distances[i], first + i);
    }
}

/* `nearest` (n×k), 1 ≤ k < n: of every row, first those that follow it, then those ahead of it.
 * `products` (n×n) are those of the rows, `squares` (n) its diagonal; `distances` (k) is on the way.
 */
EXPORTED void find_nearest(int64_t n, int64_t k, const REAL *products, const double *squares,
                           double *distances, int64_t *nearest)
{
    for (int64_t i = 0; i < n; i++) {
        struct found found = {k, 0, distances, nearest + i * k};
        look_through(&found, squares[i], squares, products + i * n, i + 1, n);
        look_through(&found, squares[i], squares, products + i * n, 0, i);
    }
}

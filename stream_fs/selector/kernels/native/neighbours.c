/* The nearest rows of every row; each row of the products is read once.
 *
 * Distances take the same operations in the same order as in fallback.py, so that both find the same
 * rows. Among equals the rows that follow come first, then those ahead.
 */

#include "loops.h"

#include <math.h>

enum { GROUP = 16 }; /* rows that are compared together, and mostly skipped */

/* The nearest so far, by distance and, among equals, in the order of insertion. */
struct nearest {
    int64_t k, count;
    double *distances;
    int64_t *rows;
};

static void insert(struct nearest *nearest, double distance, int64_t row)
{
    int64_t place = nearest->count < nearest->k ? nearest->count++ : nearest->k - 1;
    for (; place > 0 && distance < nearest->distances[place - 1]; place--) {
        nearest->distances[place] = nearest->distances[place - 1];
        nearest->rows[place] = nearest->rows[place - 1];
    }
    nearest->distances[place] = distance;
    nearest->rows[place] = row;
}

/* Squared distances of a row to `count` others, and the least of them. */
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

INLINE void search(struct nearest *nearest, double own, const double *squares,
                   const REAL *products, int64_t first, int64_t last)
{
    double distances[GROUP];
    for (; first < last; first += GROUP) {
        const int full = last - first >= GROUP, count = full ? GROUP : (int)(last - first);
        const double least =
            full ? measure(GROUP, own, squares + first, products + first, distances)
                 : measure(count, own, squares + first, products + first, distances);
        if (nearest->count == nearest->k && !(least < nearest->distances[nearest->k - 1])) continue;
        for (int i = 0; i < count; i++)
            if (nearest->count < nearest->k || distances[i] < nearest->distances[nearest->k - 1])
                insert(nearest, distances[i], first + i);
    }
}

CLONED void NAME(nearest_rows)(int64_t n, int64_t k, const REAL *products, const double *squares,
                               double *distances, int64_t *rows)
{
    for (int64_t i = 0; i < n; i++) {
        struct nearest nearest = {k, 0, distances, rows + i * k};
        search(&nearest, squares[i], squares, products + i * n, i + 1, n);
        search(&nearest, squares[i], squares, products + i * n, 0, i);
    }
}

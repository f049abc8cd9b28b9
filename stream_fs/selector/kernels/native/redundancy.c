/* Greedy choices among a few hundred features, each against those before it.
 *
 * The same operations in the same order as in fallback.py, so that both choose the same features.
 */

#include "loops.h"

enum { GROUP = 16 }; /* features that are compared together, and mostly skipped */

INLINE double worth_of(double score, float nearest, double chance, double rounding)
{
    double novelty = (1 - (double)nearest) / (1 - chance);
    novelty = novelty > 1 ? 1 : novelty;
    return score * (novelty < rounding ? 0 : novelty);
}

/* Whether one of a group's features is more similar to the new choice than to any before it. */
INLINE int any_nearer(const float *row, const float *nearest, int64_t count)
{
    if (count < GROUP) return 1;
    int nearer = 0;
    for (int k = 0; k < GROUP; k++) nearer |= row[k] > nearest[k];
    return nearer;
}

CLONED int64_t choose_features(int64_t n, const float *squares, const double *scores,
                               const int64_t *features, float *nearest, double *worth,
                               double chance, double rounding, double rival_worth, int64_t rival,
                               int64_t most, int64_t *taken)
{
    for (int64_t i = 0; i < n; i++) worth[i] = worth_of(scores[i], nearest[i], chance, rounding);
    for (int64_t count = 0; count < most; count++) {
        double greatest = 0;
#pragma omp simd reduction(max : greatest)
        for (int64_t i = 0; i < n; i++) greatest = worth[i] > greatest ? worth[i] : greatest;
        if (greatest <= 0) return count;
        int64_t best = 0;
        while (worth[best] != greatest) best++;
        if (greatest < rival_worth || (greatest == rival_worth && features[best] > rival))
            return count;
        taken[count] = best;
        worth[best] = -1;
        /* With every choice fewer features find the new one to be the most similar. */
        const float *row = squares + n * best;
        for (int64_t first = 0; first < n; first += GROUP) {
            const int64_t last = first + GROUP < n ? first + GROUP : n;
            if (!any_nearer(row + first, nearest + first, last - first)) continue;
            for (int64_t i = first; i < last; i++) {
                if (row[i] <= nearest[i]) continue;
                nearest[i] = row[i];
                if (worth[i] > 0) worth[i] = worth_of(scores[i], nearest[i], chance, rounding);
            }
        }
    }
    return most;
}

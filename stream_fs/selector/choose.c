/* The loop of choice.py, where it is explained: a few hundred features, one choice after the other.
 *
 * The same operations in the same order as numpy's, so that both choose the same to the last digit.
 */

#include <stdint.h>

#if defined(__x86_64__) && defined(__GLIBC__)
#define EXPORTED __attribute__((target_clones("avx2", "default")))
#else
#define EXPORTED
#endif

/* Digest of what the library was made of: one that is older than its source is not used. */
const char source[] = SOURCE;

/* The positions of the choices go to `taken`; how many there are. `nearest` and `worth` (n each) are
 * overwritten: cos² with the most similar choice, and score · novelty, −1 of what is chosen.
 */
EXPORTED int64_t choose(int64_t n, const float *squares, const double *scores,
                        const int64_t *features, float *nearest, double *worth, double chance,
                        double rounding, double rival_worth, int64_t rival, int64_t most,
                        int64_t *taken)
{
    const float *row = 0;
    for (int64_t count = 0;; count++) {
        if (row)
            for (int64_t i = 0; i < n; i++) nearest[i] = row[i] > nearest[i] ? row[i] : nearest[i];
        for (int64_t i = 0; i < n; i++) {
            double novelty = (1 - (double)nearest[i]) / (1 - chance);
            novelty = novelty > 1 ? 1 : novelty;
            novelty = novelty < rounding ? 0 : novelty;
            worth[i] = worth[i] < 0 ? worth[i] : scores[i] * novelty;
        }
        double most_worth = 0;
#pragma omp simd reduction(max : most_worth)
        for (int64_t i = 0; i < n; i++) most_worth = worth[i] > most_worth ? worth[i] : most_worth;
        if (count == most || most_worth <= 0) return count;
        int64_t best = 0;
        while (worth[best] != most_worth) best++;
        if (most_worth < rival_worth || (most_worth == rival_worth && features[best] > rival))
            return count;
        taken[count] = best;
        worth[best] = -1;
        row = squares + n * best;
    }
}

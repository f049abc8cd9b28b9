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

enum { GROUP = 16 }; /* features that are looked at together, and mostly passed over */

static inline double worth_of(double score, float nearest, double chance, double rounding)
{
    double novelty = (1 - (double)nearest) / (1 - chance);
    novelty = novelty > 1 ? 1 : novelty;
    return score * (novelty < rounding ? 0 : novelty);
}

/* The positions of the choices go to `taken`; how many there are. `nearest` and `worth` (n each) are
 * overwritten: cos² with the most similar choice, and score · novelty, −1 of what is chosen.
 */
EXPORTED int64_t choose(int64_t n, const float *squares, const double *scores,
                        const int64_t *features, float *nearest, double *worth, double chance,
                        double rounding, double rival_worth, int64_t rival, int64_t most,
                        int64_t *taken)
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
        /* The more are chosen, the fewer find the new one to be the most similar. */
        const float *row = squares + n * best;
        for (int64_t first = 0; first < n; first += GROUP) {
            const int64_t last = first + GROUP < n ? first + GROUP : n;
            int nearer = 0;
            if (last - first == GROUP)
                for (int k = 0; k < GROUP; k++) nearer |= row[first + k] > nearest[first + k];
            else
                nearer = 1;
            if (!nearer) continue;
            for (int64_t i = first; i < last; i++) {
                if (row[i] <= nearest[i]) continue;
                nearest[i] = row[i];
                if (worth[i] > 0) worth[i] = worth_of(scores[i], nearest[i], chance, rounding);
            }
        }
    }
    return most;
}

/* The hash, one position at a time. See hash.h and EngHashArgs for the batch layout.
 *
 * A window holds the id at the position (lag 0) and its max_order - 1 predecessors. Reading from
 * new to old, the first dead one (an image, or a place before the text) blocks itself and all older
 * ones: they read as the pad token. An ordinary token that happens to be the pad token blocks
 * nothing.
 */
#include "kernels/ref/hash.h"

/* Id at `lag` places before `position` of a sequence that begins at `start`: from the batch, from
 * the sequence's history, or dead when there is none. */
static int32_t source(const EngAddress *address, const EngHashArgs *args, int64_t sequence,
                      int64_t start, int64_t position, int lag)
{
    if (position - lag >= start) return args->tokens[position - lag];
    if (!args->history) return ENG_TOKEN_DEAD;
    int reach = address->max_order - 1;
    int64_t before = start - (position - lag); /* 1: the id just before the sequence */
    return args->history[sequence * reach + (reach - before)];
}

static void window_of(const EngAddress *address, const EngHashArgs *args, int64_t sequence,
                      int64_t start, int64_t position, int32_t window[ENG_MAX_ORDER])
{
    bool blocked = false;
    for (int lag = 0; lag < address->max_order; lag++) {
        int32_t id = source(address, args, sequence, start, position, lag);
        blocked = blocked || id == ENG_TOKEN_DEAD;
        window[lag] = blocked ? address->pad : id;
    }
}

/* Products of valid ids stay below 2^63 (the multiplier bound), so the mix is never negative and
 * its remainder means the same to signed and unsigned integers. */
static void rows_of(const EngAddress *address, int layer, const int32_t window[ENG_MAX_ORDER],
                    int64_t *rows)
{
    int64_t mix = 0;
    for (int order = 1; order <= address->max_order; order++) {
        int lag = order - 1;
        mix ^= (int64_t)window[lag] * address->multipliers[layer][lag];
        if (order < address->min_order) continue;
        for (int head = 0; head < address->heads; head++) {
            int column = (order - address->min_order) * address->heads + head;
            rows[column] = mix % address->primes[layer][column] + address->offsets[layer][column];
        }
    }
}

void eng_ref_hash(const EngAddress *address, const EngHashArgs *args)
{
    const int64_t whole[2] = {0, args->n_tokens};
    const int64_t *starts = args->starts ? args->starts : whole;
    int64_t n_seqs = args->starts ? args->n_seqs : 1;
    for (int64_t sequence = 0; sequence < n_seqs; sequence++) {
        int64_t start = starts[sequence];
        for (int64_t t = start; t < starts[sequence + 1] && t < args->n_live; t++) {
            int32_t window[ENG_MAX_ORDER];
            window_of(address, args, sequence, start, t, window);
            for (int layer = 0; layer < address->n_layers; layer++)
                rows_of(address, layer, window,
                        args->rows + (t * address->n_layers + layer) * address->n_columns);
        }
    }
}

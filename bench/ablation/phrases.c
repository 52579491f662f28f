/* Choosing phrases and keeping their gates; see phrases.h. */
#include "bench/ablation/phrases.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"

_Static_assert(ENG_PHRASE_TOKENS == 3, "a key packs three ids");
#define ID_BITS 20

typedef struct Run {
    uint64_t key; /* three ids */
    int64_t at;   /* of the held-out text: position; of a candidate: its count */
    double score;
} Run;

static uint64_t key_at(const int32_t *ids)
{
    return (uint64_t)ids[0] << (2 * ID_BITS) | (uint64_t)ids[1] << ID_BITS | (uint64_t)ids[2];
}

static int32_t id_of(uint64_t key, int place)
{
    return (int32_t)(key >> ((2 - place) * ID_BITS) & ((1u << ID_BITS) - 1));
}

static bool is_words(const EngTrainData *data, const int32_t *ids)
{
    if (data->classes[ids[0]] != ENG_TOKEN_WORD) return false;
    for (int k = 1; k < ENG_PHRASE_TOKENS; k++)
        if (data->classes[ids[k]] != ENG_TOKEN_WORD && data->classes[ids[k]] != ENG_TOKEN_PART)
            return false;
    return true;
}

static int by_key(const void *a, const void *b)
{
    const Run *x = a, *y = b;
    if (x->key != y->key) return x->key < y->key ? -1 : 1;
    return (x->at > y->at) - (x->at < y->at);
}

static int by_score(const void *a, const void *b)
{
    const Run *x = a, *y = b;
    if (x->score != y->score) return x->score > y->score ? -1 : 1;
    return (x->key > y->key) - (x->key < y->key);
}

/* All runs of words among the first n ids, sorted by key and place. */
static EngStatus collect(const EngTrainData *data, const int32_t *ids, int64_t n, Run **runs,
                         int64_t *n_runs, EngErr *err)
{
    *n_runs = 0;
    for (int64_t i = 0; i + ENG_PHRASE_TOKENS <= n; i++) *n_runs += is_words(data, ids + i);
    EngStatus status =
        eng_alloc_or((void **)runs, (size_t)*n_runs + 1, sizeof **runs, "phrases", err);
    if (status) return status;
    int64_t at = 0;
    for (int64_t i = 0; i + ENG_PHRASE_TOKENS <= n; i++)
        if (is_words(data, ids + i)) (*runs)[at++] = (Run){.key = key_at(ids + i), .at = i};
    qsort(*runs, (size_t)*n_runs, sizeof **runs, by_key);
    return ENG_OK;
}

static double pmi_of(uint64_t key, int64_t count, const int64_t *ids, int64_t n)
{
    double pmi = log2((double)count / (double)n);
    for (int k = 0; k < ENG_PHRASE_TOKENS; k++) pmi -= log2((double)ids[id_of(key, k)] / (double)n);
    return pmi;
}

/* Distinct runs that come often enough, best first; their counts in `at`. In place. */
static int64_t candidates(Run *runs, int64_t n_runs, const int64_t *ids, int64_t n)
{
    int64_t kept = 0;
    for (int64_t from = 0, to; from < n_runs; from = to) {
        for (to = from; to < n_runs && runs[to].key == runs[from].key;) to++;
        if (to - from < ENG_PHRASE_LEAST) continue;
        Run run = {.key = runs[from].key, .at = to - from};
        run.score = (double)run.at * pmi_of(run.key, run.at, ids, n);
        if (run.score > 0) runs[kept++] = run;
    }
    qsort(runs, (size_t)kept, sizeof *runs, by_score);
    return kept;
}

/* A place of the held-out text whose window lies within a sequence and a document; -1: none. */
static int64_t place_of(const EngTrainData *data, const EngTrainConfig *config, uint64_t key,
                        const Run *held, int64_t n_held)
{
    int64_t lo = 0, hi = n_held;
    while (lo < hi) {
        int64_t mid = (lo + hi) / 2;
        if (held[mid].key < key)
            lo = mid + 1;
        else
            hi = mid;
    }
    for (; lo < n_held && held[lo].key == key; lo++) {
        int64_t first = held[lo].at - ENG_PHRASE_BEFORE, k = 0;
        if (first < 0 || first % config->seq_len + ENG_PHRASE_WINDOW > config->seq_len) continue;
        while (k < ENG_PHRASE_WINDOW &&
               data->classes[data->heldout.ids[first + k]] != ENG_TOKEN_END)
            k++;
        if (k == ENG_PHRASE_WINDOW) return held[lo].at;
    }
    return -1;
}

static bool share_a_token(const int32_t *a, const int32_t *b)
{
    for (int i = 0; i < ENG_PHRASE_TOKENS; i++)
        for (int k = 0; k < ENG_PHRASE_TOKENS; k++)
            if (a[i] == b[k]) return true;
    return false;
}

/* other_source: the source must be new. */
static bool is_new(const EngTrainData *data, const EngPhrases *phrases, int64_t at,
                   bool other_source)
{
    const EngTrainText *held = &data->heldout;
    for (int i = 0; i < phrases->n; i++) {
        int64_t other = phrases->list[i].at;
        if (share_a_token(held->ids + at, held->ids + other)) return false;
        if (other_source && held->source[at] == held->source[other]) return false;
    }
    return true;
}

EngStatus eng_phrases_choose(const EngTrainData *data, const EngTrainConfig *config, int64_t n,
                             EngPhrases *phrases, EngErr *err)
{
    Run *runs = NULL, *held = NULL;
    int64_t *ids = NULL, n_runs = 0, n_held = 0;
    int64_t n_train = data->train.n < ENG_PHRASE_TEXT ? data->train.n : ENG_PHRASE_TEXT;
    *phrases = (EngPhrases){.config = config};
    phrases->streams = config->fusion == ENG_FUSION_STREAMS ? config->model.streams : 1;
    EngStatus status =
        eng_alloc_or((void **)&ids, (size_t)config->model.vocab, sizeof *ids, "counts", err);
    for (int64_t i = 0; i < n_train && !status; i++) ids[data->train.ids[i]]++;
    if (!status) status = collect(data, data->train.ids, n_train, &runs, &n_runs, err);
    if (!status) status = collect(data, data->heldout.ids, n, &held, &n_held, err);
    if (status) goto out;
    n_runs = candidates(runs, n_runs, ids, n_train);
    for (int round = 0; round < 2; round++)
        for (int64_t i = 0; i < n_runs && phrases->n < ENG_PHRASES; i++) {
            int64_t at = place_of(data, config, runs[i].key, held, n_held);
            if (at < 0 || !is_new(data, phrases, at, round == 0)) continue;
            EngPhrase *phrase = &phrases->list[phrases->n++];
            *phrase = (EngPhrase){.at = at, .count = runs[i].at};
            phrase->pmi = runs[i].score / (double)runs[i].at;
        }
out:
    eng_free(ids);
    eng_free(runs);
    eng_free(held);
    return status;
}

void eng_phrases_take(EngPhrases *phrases, int layer, EngTrainValue what, int64_t first,
                      const EngReal *data, int64_t tokens, int64_t columns)
{
    if (what != ENG_TV_GATE) return;
    for (int m = 0; m < phrases->config->engram_layers; m++)
        for (int i = 0; i < phrases->n && phrases->config->engram_at[m] == layer; i++) {
            EngPhrase *phrase = &phrases->list[i];
            for (int k = 0; k < ENG_PHRASE_WINDOW; k++) {
                int64_t at = phrase->at - ENG_PHRASE_BEFORE + k - first;
                if (at < 0 || at >= tokens) continue;
                for (int s = 0; s < phrases->streams && s < columns; s++)
                    phrase->gates[m][s][k] = data[at * columns + s];
            }
        }
}

/* ---- series ---- */

/* What a token stands for, as a label: line ends as an arrow; other control characters and bytes
 * that are no text as question marks. */
static EngStatus label_of(const EngTrainData *data, int32_t id, EngStr *label, EngErr *err)
{
    EngStr bytes = {0};
    label->n = 0;
    if (id < data->names.n_ids)
        eng_token_decode(&data->names.tokens[id], &bytes);
    else
        eng_str_printf(&bytes, "#%d", id);
    EngStatus status = eng_str_status(&bytes, err);
    json_t *text = status ? NULL : json_stringn(bytes.text, bytes.n); /* NULL: no UTF-8 */
    for (size_t i = 0; i < bytes.n && !status; i++) {
        unsigned char byte = (unsigned char)bytes.text[i];
        if (byte == '\n')
            eng_str_add(label, "\u21b5");
        else if (byte < 0x20 || (!text && byte >= 0x80))
            eng_str_add(label, "?");
        else
            eng_str_add_n(label, bytes.text + i, 1);
    }
    if (!status) status = eng_str_status(label, err);
    json_decref(text);
    eng_str_free(&bytes);
    return status;
}

static EngStatus put_phrase(const EngPhrases *phrases, int number, const EngTrainData *data,
                            EngTrainResultText *out, EngErr *err)
{
    const EngPhrase *phrase = &phrases->list[number];
    const EngTrainConfig *config = phrases->config;
    EngStr label = {0};
    char name[256];
    EngStatus status = ENG_OK;
    for (int k = 0; k < ENG_PHRASE_WINDOW && !status; k++) {
        int place = k - ENG_PHRASE_BEFORE;
        status = label_of(data, data->heldout.ids[phrase->at + place], &label, err);
        if (status) break;
        snprintf(name, sizeof name, "phrase:%d:token:%.100s", number, label.text ? label.text : "");
        status = eng_train_put(out, name, k, place >= 0 && place < ENG_PHRASE_TOKENS, err);
        for (int m = 0; m < config->engram_layers; m++)
            for (int s = 0; s < phrases->streams && !status; s++) {
                snprintf(name, sizeof name, "phrase:%d:gate:%d:%d", number, config->engram_at[m],
                         s);
                status = eng_train_put(out, name, k, (double)phrase->gates[m][s][k], err);
            }
    }
    snprintf(name, sizeof name, "phrase:%d:count", number);
    if (!status) status = eng_train_put(out, name, 0, (double)phrase->count, err);
    snprintf(name, sizeof name, "phrase:%d:pmi", number);
    if (!status) status = eng_train_put(out, name, 0, phrase->pmi, err);
    eng_str_free(&label);
    return status;
}

EngStatus eng_phrases_put(const EngPhrases *phrases, const EngTrainData *data,
                          EngTrainResultText *out, EngErr *err)
{
    EngStatus status = ENG_OK;
    for (int i = 0; i < phrases->n && !status; i++) status = put_phrase(phrases, i, data, out, err);
    return status;
}

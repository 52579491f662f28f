/* Helpers of the training tests: tiny arms from text, drawn ids. */
#ifndef ENG_TESTS_TRAIN_TEST_H
#define ENG_TESTS_TRAIN_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/rng.h"
#include "bench/backbone/train_parts.h"

enum { N_IDS = 6000 };

static inline void apply_fields(EngTrainConfig *config, const char *fields)
{
    EngErr err = {0};
    char copy[512], *rest = copy;
    snprintf(copy, sizeof copy, "%s", fields);
    for (char *one = strtok_r(copy, " ", &rest); one; one = strtok_r(NULL, " ", &rest)) {
        char *value = strchr(one, '=');
        assert_non_null(value);
        *value++ = 0;
        if (eng_train_set(config, one, value, &err)) fail_msg("%s", err.text);
    }
}

/* "name=value .." on top of the tiny rung. */
static inline EngTrainConfig tiny(const char *fields)
{
    EngTrainConfig config;
    EngErr err = {0};
    assert_int_equal(eng_train_rung("tiny", &config, &err), ENG_OK);
    apply_fields(&config, fields);
    return config;
}

/* Ids of a text in which the next one often follows from the one before. */
static inline const int32_t *drawn_ids(void)
{
    static int32_t ids[N_IDS];
    EngRng rng;
    eng_rng_seed(&rng, 17);
    for (int i = 0; i < N_IDS; i++)
        ids[i] = i && eng_rng_below(&rng, 8) ? (ids[i - 1] * 5 + 1) % 64
                                             : (int32_t)eng_rng_below(&rng, 64);
    return ids;
}

static inline EngTrainer *new_trainer(const EngTrainConfig *config)
{
    EngTrainer *t = NULL;
    EngErr err = {0};
    if (eng_trainer_create(config, &t, &err)) fail_msg("%s", err.text);
    if (eng_trainer_data(t, drawn_ids(), N_IDS, &err)) fail_msg("%s", err.text);
    return t;
}

static inline EngTrainResult run_until(EngTrainer *t, int64_t until)
{
    EngTrainResult result;
    EngErr err = {0};
    if (eng_trainer_run(t, until, NULL, NULL, &result, &err)) fail_msg("%s", err.text);
    return result;
}

static inline void assert_same_values(const EngTrainer *a, const EngTrainer *b)
{
    assert_int_equal(a->tensors.all, b->tensors.all);
    assert_memory_equal(a->values, b->values, (size_t)a->tensors.all * sizeof *a->values);
}

#endif

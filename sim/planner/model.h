/* What a model holds besides its Engram tables: weights and caches by the shapes of their tensors,
 * kept as JSON in sim/planner/models/ and compiled in, or read from a file of the same form. Each
 * tensor says where its shape is from (or the file says it for all). Never parameters times bytes:
 * that forgets scales and tensors of other widths. Caches may say of how many tokens an entry is
 * ("every"), that each stream keeps so many of the latest only ("window"), and which of several
 * formats they belong to ("format").
 */
#ifndef ENG_SIM_PLANNER_MODEL_H
#define ENG_SIM_PLANNER_MODEL_H

#include "sim/planner/ledger.h"

#define ENG_MODEL_MAX_TENSORS 48

typedef struct EngModelTensor {
    char name[64];
    EngQuantity from; /* origin, date and source; no value */
    bool split;       /* ranks share it */
    char format[16];  /* of caches that may be kept in several; "": part of each */
} EngModelTensor;

typedef struct EngModel {
    char name[48], summary[160];
    int n_weights, n_kv;
    EngTensorShape weights[ENG_MODEL_MAX_TENSORS], kv[ENG_MODEL_MAX_TENSORS];
    EngModelTensor weight_info[ENG_MODEL_MAX_TENSORS], kv_info[ENG_MODEL_MAX_TENSORS];
    int64_t layers; /* of the backbone */
    /* Bytes of the published file, tables included, which "tables" tells; origin 0: not given. */
    EngQuantity checkpoint;
    char digest[ENG_KEY_HEX];
} EngModel;

/* ENG_BAD_DATA naming model, tensor and key: unknown keys, no shape, no source, date or kind,
 * tensors and tables that are not the checkpoint. Names
 * in the shapes belong to the model, which must not move. */
EngStatus eng_model_parse(const char *name, const char *text, EngModel *model, EngErr *err);
/* A model's name or the path of a file. Unknown: ENG_NOT_FOUND. */
EngStatus eng_model_open(const char *name, EngModel *model, EngErr *err);
/* Leaves the caches of one format; NULL: of a model whose caches have but one. ENG_USAGE naming
 * those there are, and the bytes of a token in each. */
EngStatus eng_model_kv(EngModel *model, const char *format, EngErr *err);
/* Sets what split tensors are split over, by their first dimension. ENG_USAGE: ranks below 1, or
 * more than any of them has parts. */
EngStatus eng_model_split(EngModel *model, int ranks, EngErr *err);
/* Of all tensors once. */
EngStatus eng_model_bytes(const EngModel *model, uint64_t *bytes, EngErr *err);

#endif

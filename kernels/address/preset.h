/* Presets: published and laptop-scale Engram configurations, kept as JSON in
 * kernels/address/presets/ and compiled in. Facts section 1. Layers are counted from 0. */
#ifndef ENG_KERNELS_PRESET_H
#define ENG_KERNELS_PRESET_H

#include <stdbool.h>
#include "base/digest.h"
#include "kernels/address/address.h"
#include <engram/types.h>

typedef struct EngPreset {
    char name[32];
    char summary[160];
    EngAddressSpec address;
    int row_dims;            /* values per row (256) */
    EngRowFormat row_format; /* of the table */
    int hidden, streams;
    bool conv;       /* original variant: short conv after the gate */
    int conv_kernel; /* 4; dilation is max_order */
    float gate_eps;
    /* Token map the addressing was published with; vocab_ids 0 when the preset names none. */
    int64_t vocab_ids;                  /* ids of the tokenizer (129280) */
    char tokmap_digest[ENG_DIGEST_HEX]; /* sha256 of the int32-LE map, "" when none is named */
    int64_t shared_ids;       /* ids shared with the V3 tokenizer (the facts' short cut), or 0 */
    char digest[ENG_KEY_HEX]; /* key of the preset's canonical JSON */
} EngPreset;

/* Reads a preset's JSON text; unknown keys, wrong types and an addressing that cannot be built are
 * ENG_BAD_DATA (ENG_USAGE from the addressing) naming preset and key. */
EngStatus eng_preset_parse(const char *name, const char *text, EngPreset *preset, EngErr *err);
/* Unknown: ENG_USAGE, naming the nearest preset. */
EngStatus eng_preset_find(const char *name, EngPreset *preset, EngErr *err);
/* All names, NULL-terminated. */
const char *const *eng_preset_names(void);

#endif

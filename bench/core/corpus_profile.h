/* Profiles of corpora (sim/cache/profile.h), made once and kept as profiles/<corpus>-<digest>.json
 * beside the streams. */
#ifndef ENG_BENCH_CORPUS_PROFILE_H
#define ENG_BENCH_CORPUS_PROFILE_H

#include "sim/cache/profile.h"

/* Of a preset's orders and token compression. A kept file that is damaged, or of another stream, is
 * made anew; where none can be kept the profile is counted each time, with a warning.
 * ENG_NOT_FOUND / ENG_BAD_DATA: no such corpus or preset. A corpus that is a stand-in for one not
 * fetched (eng_resources_has_corpus) is refused: ENG_UNSUPPORTED. */
EngStatus eng_corpus_profile(const char *data_dir, const char *preset, const char *corpus,
                             EngProfile *profile, EngErr *err);

#endif

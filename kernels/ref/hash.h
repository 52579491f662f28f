/* Oracle of the hash: the rows of every position, written to be read (engram_facts section 3). */
#ifndef ENG_KERNELS_REF_HASH_H
#define ENG_KERNELS_REF_HASH_H

#include <engram/kernels.h>

/* Fills args->rows [n_tokens, n_layers, n_columns] at the live positions of every sequence and
 * touches nothing else. Ids must be valid (eng_address_check_ids) and starts ascending. */
void eng_ref_hash(const EngAddress *address, const EngHashArgs *args);

#endif

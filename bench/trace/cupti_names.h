/* Strings that activity records point to. CUPTI promises them only while it hands a buffer over, so
 * they are copied then, and the pointer in the record is replaced by a number: 1, 2, ... in the
 * order of first sight. From there on a buffer holds no addresses and can be decoded at any time.
 * Calls may come from several threads. */
#ifndef ENG_TRACE_CUPTI_NAMES_H
#define ENG_TRACE_CUPTI_NAMES_H

#include <stdint.h>

typedef struct EngCuptiNames EngCuptiNames;

EngCuptiNames *eng_cupti_names_create(void); /* NULL: no memory */
void eng_cupti_names_destroy(EngCuptiNames *names);

/* The number of text, copied when it is new; 0: text is NULL, or no memory. */
uint64_t eng_cupti_names_add(EngCuptiNames *names, const char *text);
/* NULL: no such number. Lives as long as names. */
const char *eng_cupti_names_text(EngCuptiNames *names, uint64_t number);

#endif

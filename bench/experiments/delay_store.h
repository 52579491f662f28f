/* A store whose reads take longer: stands for a slower device or a link between machines. What is
 * measured on it is emulated and says so. */
#ifndef ENG_EXPERIMENTS_DELAY_STORE_H
#define ENG_EXPERIMENTS_DELAY_STORE_H

#include <engram/store.h>

typedef struct EngDelayStore {
    EngStore base; /* to be read from; lives in this struct and is not destroyed */
    EngStore *inner;
    int64_t delay_ns;
} EngDelayStore;

/* Each read sleeps for delay_ns and then reads from `inner`, which stays the caller's. */
void eng_delay_store_init(EngDelayStore *store, EngStore *inner, int64_t delay_ns);

#endif

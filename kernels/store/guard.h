/* Reading mapped files without dying: where a file was cut short, or its device fails, the kernel
 * raises SIGBUS at the access. A guarded region turns that into a return value.
 *
 * The handler is process-wide, installed by the first eng_guard_install(), and passes every SIGBUS
 * outside a guarded region on to the handler that was there before. Guards are per thread and do
 * not nest.
 */
#ifndef ENG_KERNELS_STORE_GUARD_H
#define ENG_KERNELS_STORE_GUARD_H

#include <stdbool.h>
#include <stdint.h>

void eng_guard_install(void);

/* Runs body(context) and returns true; false when it was stopped by SIGBUS, with the address in
 * *at. What the body held (locks, memory) stays as it was: it should only copy. */
bool eng_guarded(void (*body)(void *context), void *context, uintptr_t *at);

#endif

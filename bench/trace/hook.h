/* The NVTX tool of this workbench: callbacks that store every event of every thread in a recording
 * (record.h). Attached in two ways: linked into the program (hook_static.c), or preloaded into any
 * NVTX-annotated program (bench/trace/library/).
 *
 * Understood: push/pop and start/end ranges, marks, domains, registered and plain names (wide ones
 * too), categories, colours, scalar payloads, payload schemas of numbers, thread names.
 */
#ifndef ENG_BENCH_TRACE_HOOK_H
#define ENG_BENCH_TRACE_HOOK_H

#include "bench/trace/record.h"

/* Records into an initialised region from now on; what was defined before (domains, registered
 * names, schemas) is told to it first. */
void eng_hook_attach(EngRecordHead *head);
/* Events are no longer stored. The region may be read when other threads are outside NVTX calls. */
void eng_hook_detach(void);
/* After fork, in the child: detached, without waiting for locks that the parent's threads held. */
void eng_hook_forget_in_child(void);
/* Whether NVTX took us as its tool (at the process's first NVTX call). */
bool eng_hook_is_tool(void);

/* ---- the linked-in hook ------------------------------------------------------------------------
 */

/* Why it cannot record in this process, NULL: it can. An outside tool that is injected through
 * NVTX_INJECTION64_PATH wins. */
const char *eng_hook_refusal(void);
/* Resets the region, switches the product's ranges on and attaches. False: see eng_hook_refusal. */
bool eng_hook_start(EngRecordHead *head);
void eng_hook_stop(EngRecordHead *head);

#endif

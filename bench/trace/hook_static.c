/* The hook as part of the program: NVTX finds it through two symbols that its own code defines
 * weakly, and only when no tool is injected through the environment. See hook.h. */
#include "bench/trace/hook.h"

#include "base/nvtx.h"

#if ENG_HAVE_NVTX

#define NVTX_NO_IMPL
#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtPayload.h>

int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t export_table);
int InitializeInjectionNvtxExtension(nvtxExtModuleInfo_t *module);

extern const NvtxInitializeInjectionNvtxFunc_t InitializeInjectionNvtx2_fnptr;
extern const NvtxExtInitializeInjectionFunc_t InitializeInjectionNvtxExtension_fnptr;
const NvtxInitializeInjectionNvtxFunc_t InitializeInjectionNvtx2_fnptr = InitializeInjectionNvtx2;
const NvtxExtInitializeInjectionFunc_t InitializeInjectionNvtxExtension_fnptr =
    InitializeInjectionNvtxExtension;

#endif

const char *eng_hook_refusal(void)
{
    if (!eng_nvtx_built()) return "built without the NVTX headers";
    if (eng_nvtx_outside_tool()) return "another tool listens (NVTX_INJECTION64_PATH is set)";
    return NULL;
}

bool eng_hook_start(EngRecordHead *head)
{
    if (eng_hook_refusal()) return false;
    eng_record_init(head, head->n_chunks);
    eng_hook_attach(head);
    eng_nvtx_on = true;
    return true;
}

void eng_hook_stop(EngRecordHead *head)
{
    if (eng_hook_refusal()) return;
    eng_nvtx_on = false;
    eng_hook_detach();
    eng_record_stop(head);
}

/* Admission at the second use; see admission.h. */
#include "sim/cache/admission.h"

#include "base/mem.h"

EngStatus eng_admission_init(EngAdmission *admission, EngErr *err)
{
    *admission = (EngAdmission){0};
    EngStatus status = eng_row_ids_init(&admission->seen, err);
    if (!status) status = eng_row_ids_init(&admission->admitted, err);
    if (!status) status = eng_stack_init(&admission->stack, err);
    if (status) eng_admission_fini(admission);
    return status;
}

void eng_admission_fini(EngAdmission *admission)
{
    eng_row_ids_fini(&admission->seen);
    eng_row_ids_fini(&admission->admitted);
    eng_stack_fini(&admission->stack);
    eng_free(admission->used);
    *admission = (EngAdmission){0};
}

EngStatus eng_admission_add(EngAdmission *admission, int64_t row, EngErr *err)
{
    uint32_t id, place;
    EngStatus status = eng_row_ids_of(&admission->seen, row, &id, err);
    if (!status)
        status = eng_by_id_grow((void **)&admission->used, &admission->uses_room, (uint64_t)id + 1,
                                sizeof *admission->used, err);
    if (status) return status;
    admission->accesses++;
    if (!admission->used[id]) {
        admission->used[id] = 1;
        return ENG_OK;
    }
    status = eng_row_ids_of(&admission->admitted, id, &place, err);
    return status ? status : eng_stack_add(&admission->stack, place, NULL, err);
}

void eng_admission_hits(const EngAdmission *admission, const int64_t *capacities, int n,
                        int64_t *hits)
{
    eng_stack_hits(&admission->stack, capacities, n, hits);
}

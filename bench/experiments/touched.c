/* Lists of touched rows; see touched.h. */
#include "bench/experiments/touched.h"

#include "base/mem.h"
#include "kernels/ref/back_gather.h"

EngStatus eng_touched_shape(const EngPoint *point, EngShape *shape, int64_t *table_rows,
                            EngErr *err)
{
    EngStatus status = eng_shape_resolve(point, shape, err);
    if (!status) *table_rows = eng_shape_table(shape).rows;
    return status;
}

void eng_touched_need(const EngPoint *point, const EngShape *shape, int64_t windows, EngNeed *need)
{
    size_t rows = (size_t)shape->tokens * (size_t)shape->columns;
    *need = (EngNeed){.corpus = eng_point_word(point, "corpus"),
                      .preset = eng_point_word(point, "preset"),
                      .max_tokens = shape->tokens,
                      .private_bytes = 2 * rows * (size_t)windows * sizeof(int64_t)};
}

static EngStatus list_rows(EngTouched *touched, EngErr *err)
{
    const EngShape *shape = &touched->shape;
    EngBackGatherProblem problem = {touched->table_rows, shape->row_dims, shape->columns,
                                    shape->tokens};
    for (int64_t w = 0; w < touched->windows.n; w++) {
        EngBackGatherArgs args = {.rows = touched->rows + w * touched->per_window,
                                  .row_stride = shape->columns};
        if (!eng_ref_touched(&problem, &args, touched->lists + w * touched->per_window,
                             &touched->n[w]))
            return ENG_FAIL(err, ENG_NO_MEMORY, "no memory for the rows of a window");
        if (touched->n[w] > touched->largest) touched->largest = touched->n[w];
        touched->mean += (double)touched->n[w] / (double)touched->windows.n;
    }
    return ENG_OK;
}

EngStatus eng_touched_create(EngTouched *touched, const EngBench *bench, const EngPoint *point,
                             int64_t windows, EngErr *err)
{
    char who[ENG_WHO_BYTES];
    EngTokens tokens;
    EngShape *shape = &touched->shape;
    EngStatus status = eng_touched_shape(point, shape, &touched->table_rows, err);
    if (status) return status;
    touched->per_window = shape->tokens * shape->columns;
    status = eng_resources_tokens(bench->resources, shape->preset.name,
                                  eng_point_word(point, "corpus"), &tokens, err);
    if (!status)
        status =
            eng_windows_create(&touched->windows, &tokens, shape->tokens, windows,
                               shape->max_order - 1, bench->seed, eng_point_who(point, who), err);
    if (!status) status = eng_windows_rows(&touched->windows, &shape->address, &touched->rows, err);
    if (!status)
        status =
            eng_alloc_or((void **)&touched->lists, (size_t)windows,
                         (size_t)touched->per_window * sizeof *touched->lists, "touched rows", err);
    if (!status)
        status = eng_alloc_or((void **)&touched->n, (size_t)windows, sizeof *touched->n,
                              "touched rows", err);
    return status ? status : list_rows(touched, err);
}

void eng_touched_destroy(EngTouched *touched)
{
    eng_windows_destroy(&touched->windows);
    eng_free(touched->rows);
    eng_free(touched->lists);
    eng_free(touched->n);
    *touched = (EngTouched){0};
}

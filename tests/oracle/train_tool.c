/* Our side of tests/oracle/twin.py: what a trainer starts with, its loss and gradients on a batch,
 * and how fast it is, as files and lines that the twin reads.
 *
 * train_tool speed SECONDS [name=value ..]   trains on drawn ids; tokens per CPU second, parts
 * train_tool run IDS [name=value ..]         trains on a file of uint32 ids (modulo vocab), with
 *                                            the last 500,000 held out
 * train_tool dump FILE [name=value ..]       start values, a batch, loss, gradients
 * train_tool case FILE NAME                  the same of a case of train_cases.h
 * train_tool cases -                         their names
 * rung=R0c (first) says where the fields start.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"
#include "tests/unit/backbone/train_cases.h"

static void stop_on(EngStatus status, const EngErr *err)
{
    if (!status) return;
    fprintf(stderr, "train_tool: %s\n", err->text);
    exit(eng_status_exit_code(status));
}

static EngTrainConfig configure(int n, char **fields)
{
    EngTrainConfig config;
    EngErr err = {0};
    bool rung = n && !strncmp(fields[0], "rung=", 5);
    stop_on(eng_train_rung(rung ? fields[0] + 5 : "R0c", &config, &err), &err);
    for (int i = rung; i < n; i++) {
        char *value = strchr(fields[i], '=');
        if (!value) {
            fprintf(stderr, "train_tool: %s: not name=value\n", fields[i]);
            exit(1);
        }
        *value++ = 0;
        if (!strcmp(fields[i], "rho")) {
            EngTrainConfig base = config;
            double residual;
            base.engram_layers = 0;
            stop_on(eng_train_allocate(&base, atof(value), &config, &residual, &err), &err);
        } else {
            stop_on(eng_train_set(&config, fields[i], value, &err), &err);
        }
    }
    return config;
}

static int32_t *draw_ids(int64_t n, int vocab)
{
    int32_t *ids = eng_alloc_array((size_t)n, sizeof *ids);
    EngRng rng;
    eng_rng_seed(&rng, 11);
    for (int64_t i = 0; ids && i < n; i++) /* low ids oftener, as in text */
        ids[i] = (int32_t)(eng_rng_unit(&rng) * eng_rng_unit(&rng) * vocab);
    return ids;
}

static void print_times(const EngTrainer *t, int64_t tokens)
{
    int64_t ns[ENG_PART_COUNT], all = 0;
    eng_trainer_times(t, ns);
    for (int i = 0; i < ENG_PART_COUNT; i++) all += ns[i];
    for (int i = 0; i < ENG_PART_COUNT; i++)
        printf("part %-10s %8.0f ns/token %5.1f %%\n", eng_train_part_name((EngTrainPart)i),
               (double)ns[i] / (double)tokens, 100 * (double)ns[i] / (double)all);
    printf("cpu_tokens_per_s %.0f\n", (double)tokens / ((double)all * 1e-9));
}

typedef struct Watch {
    int64_t begin, end, every;
} Watch;

static bool watch(void *context, const EngTrainPoint *point)
{
    const Watch *w = context;
    if (w->every && point->step % w->every == 0)
        printf("step %6ld tokens %9ld loss %.4f lr %.5f norm %.3f load %.2f unused %d cpu %.1f s\n",
               (long)point->step, (long)point->tokens, point->loss, point->lr, point->grad_norm,
               point->load_max, point->unused, point->cpu_s);
    fflush(stdout);
    return !w->end || eng_now_ns() < w->end;
}

static int speed(double seconds, EngTrainConfig *config)
{
    EngTrainer *t = NULL;
    EngErr err = {0};
    EngTrainResult result;
    config->tokens = config->batch_tokens * 100000;
    int64_t n = config->tokens / 100 + 1;
    config->tokens = n - 1;
    int32_t *ids = draw_ids(n, config->model.vocab);
    stop_on(eng_trainer_create(config, &t, &err), &err);
    stop_on(eng_trainer_data(t, ids, n, &err), &err);
    Watch w = {.begin = eng_now_ns()};
    w.end = w.begin + (int64_t)(seconds * 1e9);
    stop_on(eng_trainer_run(t, 0, watch, &w, &result, &err), &err);
    printf("tokens_per_s %.0f\n",
           (double)result.last.tokens / ((double)(eng_now_ns() - w.begin) * 1e-9));
    print_times(t, result.last.tokens);
    eng_trainer_destroy(t);
    eng_free(ids);
    return 0;
}

static int run(const char *path, EngTrainConfig *config)
{
    enum { HELD_OUT = 500000 };
    EngTrainer *t = NULL;
    EngErr err = {0};
    EngMapping file;
    EngTrainResult result;
    EngTrainAccount account;
    double loss;
    int64_t predicted;
    stop_on(eng_file_map(path, &file, &err), &err);
    int64_t n = (int64_t)(file.bytes / 4);
    int32_t *ids = eng_alloc_array((size_t)n, sizeof *ids);
    for (int64_t i = 0; i < n; i++)
        ids[i] = (int32_t)(((const uint32_t *)file.data)[i] % (uint32_t)config->model.vocab);
    stop_on(eng_train_account(config, &account, &err), &err);
    printf("total %ld active %ld tables %ld experts %d row_start %ld\n", (long)account.total,
           (long)account.active, (long)account.tables, config->model.experts,
           (long)config->row_start);
    stop_on(eng_trainer_create(config, &t, &err), &err);
    stop_on(eng_trainer_data(t, ids, n - HELD_OUT, &err), &err);
    Watch w = {.every = 100};
    stop_on(eng_trainer_run(t, 0, watch, &w, &result, &err), &err);
    if (*result.failed) printf("failed: %s\n", result.failed);
    print_times(t, result.last.tokens);
    stop_on(
        eng_trainer_evaluate(t, ids + n - HELD_OUT, HELD_OUT, NULL, NULL, &loss, &predicted, &err),
        &err);
    printf("held_out %.4f over %ld\n", loss, (long)predicted);
    eng_trainer_destroy(t);
    return 0;
}

/* ---- for the twin ---- */

/* One line of JSON, then the numbers it names, in their order: values, gradients of all tensors as
 * float32, router biases as float32, ids as int32, rows as int64. */
static void write_dump(const char *path, EngTrainer *t, const int32_t *ids, double loss)
{
    EngWriter out = {0};
    EngErr err = {0};
    char value[128];
    const EngTrainConfig *c = &t->config;
    int64_t rows = c->batch_tokens * t->address.n_layers * t->address.n_columns;
    int64_t n_ids = c->batch_tokens / c->seq_len * (c->seq_len + 1);
    stop_on(eng_writer_open(&out, path, &err), &err);
    stop_on(eng_writer_printf(&out, &err, "{\"fields\": {"), &err);
    for (int i = 0; i < eng_train_fields(); i++) {
        stop_on(eng_train_field_get(c, i, value, sizeof value, &err), &err);
        stop_on(eng_writer_printf(&out, &err, "%s\"%s\": \"%s\"", i ? ", " : "",
                                  eng_train_field_name(i), value),
                &err);
    }
    stop_on(eng_writer_printf(&out, &err,
                              "}, \"loss\": %.17g, \"ids\": %ld, \"rows\": %ld, \"tensors\": [",
                              loss, (long)n_ids, (long)rows),
            &err);
    EngTrainTensor tensor;
    for (int i = 0; eng_trainer_tensor(t, i, &tensor); i++)
        stop_on(eng_writer_printf(&out, &err, "%s[\"%s\", %ld, %ld]", i ? ", " : "", tensor.name,
                                  (long)tensor.rows, (long)tensor.columns),
                &err);
    stop_on(eng_writer_printf(&out, &err, "]}\n"), &err);
    stop_on(eng_writer_put(&out, t->values, (size_t)t->tensors.all * 4, &err), &err);
    stop_on(eng_writer_put(&out, t->lanes[0].gradient, (size_t)t->tensors.dense * 4, &err), &err);
    for (int m = 0; m < c->engram_layers; m++) {
        size_t n = (size_t)(t->address.rows[m] * c->row_dims);
        float *gradient = eng_alloc_array(n, sizeof *gradient);
        stop_on(eng_trainer_table_gradient(t, m, gradient, &err), &err);
        stop_on(eng_writer_put(&out, gradient, n * 4, &err), &err);
        eng_free(gradient);
    }
    stop_on(eng_writer_put(&out, t->bias, (size_t)(c->model.layers * c->model.experts) * 4, &err),
            &err);
    stop_on(eng_writer_put(&out, ids, (size_t)n_ids * 4, &err), &err);
    stop_on(eng_writer_put(&out, t->batch_rows, (size_t)rows * 8, &err), &err);
    stop_on(eng_writer_commit(&out, &err), &err);
    eng_writer_close(&out);
}

static int dump(const char *path, EngTrainConfig *config, const int32_t *ids, bool drawn)
{
    EngTrainer *t = NULL;
    EngErr err = {0};
    double loss;
    stop_on(eng_trainer_create(config, &t, &err), &err);
    if (drawn) case_values(t);
    stop_on(eng_trainer_gradient(t, ids, &loss, &err), &err);
    write_dump(path, t, ids, loss);
    eng_trainer_destroy(t);
    return 0;
}

static int dump_case(const char *path, const char *name)
{
    EngTrainConfig config;
    EngErr err = {0};
    int32_t ids[CASE_IDS];
    case_ids(ids);
    for (int i = 0; i < N_TRAIN_CASES; i++) {
        if (strcmp(train_cases[i].name, name) != 0) continue;
        stop_on(case_config(&train_cases[i], &config, &err), &err);
        return dump(path, &config, ids, true);
    }
    fprintf(stderr, "train_tool: no case %s\n", name);
    return 1;
}

static int dump_rung(const char *path, EngTrainConfig *config)
{
    int64_t n = config->batch_tokens / config->seq_len * (config->seq_len + 1);
    int32_t *ids = draw_ids(n, config->model.vocab);
    int rc = dump(path, config, ids, false);
    eng_free(ids);
    return rc;
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        fprintf(stderr, "usage: train_tool speed SECONDS|run IDS|dump FILE [name=value ..]\n"
                        "       train_tool cases -|case FILE NAME\n");
        return 1;
    }
    if (!strcmp(argv[1], "cases")) {
        for (int i = 0; i < N_TRAIN_CASES; i++) puts(train_cases[i].name);
        return 0;
    }
    if (!strcmp(argv[1], "case") && argc == 4) return dump_case(argv[2], argv[3]);
    EngTrainConfig config = configure(argc - 3, argv + 3);
    if (!strcmp(argv[1], "speed")) return speed(atof(argv[2]), &config);
    if (!strcmp(argv[1], "run")) return run(argv[2], &config);
    if (!strcmp(argv[1], "dump")) return dump_rung(argv[2], &config);
    return 1;
}

/* Export: the columns, one row per point, text that reads back, and the same bytes each time. */
#include "db_fixture.h"

#include <jansson.h>

#include "bench/core/db_export.h"

static const char text_sweep[] = "[gather]\ntokens = 1, 2\n[reuse]\ntokens = 8\n";

static EngStatus keep(void *context, const char *text, size_t n, EngErr *err)
{
    eng_str_add_n(context, text, n);
    return eng_str_status(context, err);
}

static EngStr export(EngDb *db, const char *run, const char *experiment, EngRowsFormat format,
                     bool samples, int64_t *n)
{
    EngStr out = {0};
    const EngExportOptions options = {run, experiment, format, samples};
    OK(eng_db_export(db, &options, keep, &out, n, err));
    return out;
}

static EngDb *measured_db(const Folder *folder, char run_id[ENG_KEY_HEX])
{
    EngDb *db = open_db(folder, ENG_DB_RUN);
    put_common(db);
    Run run = begin_run(db, text_sweep, false);
    measure_all(db, &run, 7);
    strcpy(run_id, run.run_id);
    free_run(&run);
    return db;
}

static void test_points(void **state)
{
    char run_id[ENG_KEY_HEX];
    int64_t n, again;
    EngDb *db = measured_db(*state, run_id);
    EngStr csv = export(db, "latest", NULL, ENG_ROWS_CSV, false, &n);
    const char *header =
        "run_id,machine_id,experiment,kind,backend,corpus,heads,mix,row_format,tokens,variant,"
        "is_roof,outcome,reason,percent_of_roof,expected_us,why,bytes,bytes_ci_lo,bytes_ci_hi,"
        "bytes_n,distinct,"
        "distinct_ci_lo,distinct_ci_hi,distinct_n,gbps,gbps_ci_lo,gbps_ci_hi,gbps_n,wall_us,"
        "wall_us_ci_lo,wall_us_ci_hi,wall_us_n,stop_reason,config_key,point_key\n";
    assert_memory_equal(csv.text, header, strlen(header));
    assert_int_equal(n, number(db, "SELECT count(*) FROM run_points"));
    /* Values are pairs 0..6, so the median is 3; wall_us is twice that. */
    char line[256];
    snprintf(line, sizeof line,
             "\n%s,machine-1,gather,measured,cpu,prose,8,0.3,fp8,1,fast,0,measured,,,,,,,,,,,,,3,",
             run_id);
    assert_non_null(strstr(csv.text, line));
    EngStr once_more = export(db, run_id, NULL, ENG_ROWS_CSV, false, &again);
    assert_string_equal(csv.text, once_more.text);
    eng_str_free(&once_more);
    /* Only one experiment: its columns alone. */
    EngStr one = export(db, "all", "reuse", ENG_ROWS_CSV, false, &again);
    assert_int_equal(again, 1);
    assert_null(strstr(one.text, "gbps"));
    assert_non_null(strstr(one.text, "corpus,tokens,variant"));
    eng_str_free(&one);
    eng_str_free(&csv);
    eng_db_close(db);
}

static void test_json(void **state)
{
    char run_id[ENG_KEY_HEX];
    int64_t n;
    EngDb *db = measured_db(*state, run_id);
    EngStr text = export(db, "latest", NULL, ENG_ROWS_JSON, false, &n);
    json_t *rows = json_loads(text.text, JSON_REJECT_DUPLICATES, NULL);
    assert_int_equal(json_array_size(rows), n);
    for (size_t i = 0; i < json_array_size(rows); i++) {
        json_t *row = json_array_get(rows, i);
        assert_int_equal(json_object_size(row), 36);
        assert_true(json_is_integer(json_object_get(row, "tokens")));
        bool of_gather = !strcmp(json_string_value(json_object_get(row, "experiment")), "gather");
        assert_true(json_is_number(json_object_get(row, "gbps")) == of_gather);
        assert_true(json_is_null(json_object_get(row, "distinct")) == of_gather);
    }
    json_decref(rows);
    eng_str_free(&text);
    eng_db_close(db);
}

static void test_samples(void **state)
{
    char run_id[ENG_KEY_HEX];
    int64_t n;
    EngDb *db = measured_db(*state, run_id);
    sqlite3_exec(eng_db_handle(db),
                 "INSERT INTO sample_values SELECT block_id, point_key, segment, pair,"
                 " 'counter_page_faults', 4 FROM samples WHERE pair = 2",
                 NULL, NULL, NULL);
    EngStr csv = export(db, "latest", "gather", ENG_ROWS_CSV, true, &n);
    assert_int_equal(n, number(db, "SELECT count(*) FROM samples JOIN points USING (point_key)"
                                   " WHERE experiment = 'gather'"));
    assert_non_null(strstr(csv.text, ",traced,bytes,gbps,wall_us,counter_page_faults,config_key,"));
    assert_non_null(strstr(csv.text, ",0,2,0,2,102,109,0,,2,4,4,"));
    eng_str_free(&csv);
    /* Counters are no metrics: a summary has none. */
    csv = export(db, "latest", NULL, ENG_ROWS_CSV, false, &n);
    assert_null(strstr(csv.text, "counter"));
    eng_str_free(&csv);
    eng_db_close(db);
}

static void test_nothing(void **state)
{
    char run_id[ENG_KEY_HEX];
    int64_t n;
    EngErr err = {0};
    EngStr out = {0};
    EngDb *db = measured_db(*state, run_id);
    const EngExportOptions none = {"zz", NULL, ENG_ROWS_CSV, false},
                           other = {"latest", "hash", ENG_ROWS_CSV, false};
    assert_int_equal(eng_db_export(db, &none, keep, &out, &n, &err), ENG_NOT_FOUND);
    assert_int_equal(eng_db_export(db, &other, keep, &out, &n, &err), ENG_NOT_FOUND);
    assert_non_null(strstr(err.text, "hash"));
    assert_int_equal(out.n, 0);
    eng_str_free(&out);
    eng_db_close(db);
}

/* Every allocation fails once: a clear error, and the next try gives the same bytes. */
static void test_no_memory(void **state)
{
    char run_id[ENG_KEY_HEX];
    int64_t n;
    EngDb *db = measured_db(*state, run_id);
    EngStr whole = export(db, "latest", NULL, ENG_ROWS_JSON, false, &n);
    int failures = 0;
    for (uint64_t at = 1;; at++) {
        EngStr out = {0};
        EngErr err = {0};
        const EngExportOptions options = {"latest", NULL, ENG_ROWS_JSON, false};
        uint64_t live = eng_mem_live_blocks();
        eng_mem_fail_at(at);
        EngStatus status = eng_db_export(db, &options, keep, &out, &n, &err);
        bool reached = eng_mem_fail_at(0) >= at;
        eng_str_free(&out);
        assert_int_equal(eng_mem_live_blocks(), live);
        if (!status) {
            assert_false(reached);
            break;
        }
        assert_int_equal(status, ENG_NO_MEMORY);
        assert_true(err.text[0]);
        failures++;
    }
    assert_true(failures > 5);
    EngStr again = export(db, "latest", NULL, ENG_ROWS_JSON, false, &n);
    assert_string_equal(whole.text, again.text);
    eng_str_free(&whole);
    eng_str_free(&again);
    eng_db_close(db);
}

static void test_text(void **state)
{
    static const char *const columns[] = {"a", "b,c"};
    (void)state;
    for (int format = ENG_ROWS_CSV; format <= ENG_ROWS_JSON; format++) {
        EngStr out = {0};
        EngErr error = {0};
        EngRowsText rows = {.format = (EngRowsFormat)format,
                            .columns = columns,
                            .n_columns = 2,
                            .sink = keep,
                            .context = &out};
        OK(eng_rows_begin(&rows, err));
        eng_rows_text(&rows, "say \"x\"\nand, y");
        eng_rows_real(&rows, 0.1);
        OK(eng_rows_end_row(&rows, err));
        eng_rows_text(&rows, "\xff\t\xc3\xa9");
        eng_rows_real(&rows, NAN);
        OK(eng_rows_end_row(&rows, err));
        eng_rows_text(&rows, NULL);
        assert_int_equal(eng_rows_end_row(&rows, &error), ENG_INTERNAL);
        eng_rows_int(&rows, -9007199254740993);
        OK(eng_rows_end_row(&rows, err));
        OK(eng_rows_end(&rows, err));
        if (format == ENG_ROWS_CSV)
            assert_string_equal(out.text,
                                "a,\"b,c\"\n\"say \"\"x\"\"\nand, y\",0.1\n\xff\t\xc3\xa9,\n,"
                                "-9007199254740993\n");
        else
            assert_string_equal(
                out.text, "[\n{\"a\":\"say \\\"x\\\"\\nand, y\",\"b,c\":0.1},\n{\"a\":\"?\\t??\","
                          "\"b,c\":null},\n{\"a\":null,\"b,c\":-9007199254740993}\n]\n");
        eng_rows_free(&rows);
        eng_str_free(&out);
    }
    const double values[] = {0, 1.0 / 3, 1e300, 5e-324, 123456789.123, 0.1 + 0.2};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        char text[32];
        eng_shortest_real(values[i], text);
        assert_true(strtod(text, NULL) == values[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_points, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_json, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_samples, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_nothing, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_no_memory, make_folder, remove_folder),
        cmocka_unit_test(test_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

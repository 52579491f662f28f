/* Sweeps: sections turned into checked axes, zips, conditions and settings; overrides from the
 * command line. The effective sweep as text is in sweep_text.c. See sweep.h and sweeps/README.md.
 */
#include "bench/core/sweep.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "bench/core/stopping.h"
#include "bench/core/sweep_parts.h"
#include "kernels/address/normalize.h"

#define MAX_SAMPLES 10000   /* per point: median_ranks of the database ends there */
#define MAX_POINTS  1000000 /* of a sweep, before `where`: more would be planned for hours */

#define MOST_SHARE  5000 /* 50 % */

const EngSweepSettings eng_sweep_defaults = {.pairs = 10, .segments = 3, .budget_ms = 0, .seed = 1};

static const char *const setting_keys[] = {"pairs",     "segments", "budget_ms", "seed",
                                           "precision", "settled",  "trace"};
#define N_SETTINGS 7
static const char *const section_keys[] = {"zip",       "where", "compare",   "pairs",   "segments",
                                           "budget_ms", "seed",  "precision", "settled", "trace"};
#define N_SECTION_KEYS 10
static const char *const sweep_keys[] = {"name", "question",  "pairs",   "segments", "budget_ms",
                                         "seed", "precision", "settled", "trace"};
#define N_SWEEP_KEYS 9

static bool is_one_of(const char *key, const char *const *keys, int n)
{
    for (int i = 0; i < n; i++)
        if (!strcmp(key, keys[i])) return true;
    return false;
}

bool eng_sweep_is_setting(const char *key)
{
    return is_one_of(key, setting_keys, N_SETTINGS);
}

/* Puts "source:line: [section] key = value" in front of an error about one entry. */
static EngStatus locate(EngErr *err, EngStatus status, const EngSweep *sweep, const char *section,
                        const EngSweepEntry *entry)
{
    char value[64];
    snprintf(value, sizeof value, "%s", entry->value);
    if (strlen(entry->value) >= sizeof value) memcpy(value + sizeof value - 4, "...", 4);
    if (entry->line)
        eng_err_prefix(err, "%s:%d: [%s] %s = %s", sweep->source, entry->line, section, entry->key,
                       value);
    else
        eng_err_prefix(err, "-a %s=%s: [%s]", entry->key, value, section);
    return status;
}

/* ---- settings ----------------------------------------------------------------------------------
 */

static EngStatus number_in(const char *text, int64_t least, int64_t most, int64_t *out, EngErr *err)
{
    if (!eng_parse_i64(text, out)) return ENG_FAIL(err, ENG_USAGE, "'%s' is not an integer", text);
    if (*out < least || *out > most)
        return ENG_FAIL(err, ENG_USAGE, "must lie between %lld and %lld", (long long)least,
                        (long long)most);
    return ENG_OK;
}

/* "1 %", "0.5%": a share in hundredths of a percent. */
static EngStatus share_of(const char *text, int *out, EngErr *err)
{
    char number[32];
    double percent = NAN;
    size_t n = strcspn(text, "%");
    snprintf(number, sizeof number, "%.*s", (int)(n < sizeof number ? n : 0), text);
    if (!strcmp(text + n, "%") && eng_parse_f64(eng_trim(number), &percent) && percent >= 0 &&
        percent * 100 <= MOST_SHARE && fabs(percent * 100 - round(percent * 100)) < 1e-6) {
        *out = (int)lround(percent * 100);
        return ENG_OK;
    }
    return ENG_FAIL(err, ENG_USAGE,
                    "'%s' is no share from 0%% to 50%% in steps of 0.01%%, such as 1%%", text);
}

static EngStatus set_setting(EngSweepSettings *settings, const char *key, const char *text,
                             EngErr *err)
{
    int64_t number = 0;
    EngStatus status;
    if (!strcmp(key, "pairs")) {
        status = number_in(text, 1, MAX_SAMPLES, &number, err);
        settings->pairs = (int)number;
    } else if (!strcmp(key, "segments")) {
        status = number_in(text, 1, 1000, &number, err);
        settings->segments = (int)number;
    } else if (!strcmp(key, "budget_ms")) {
        status = number_in(text, 0, (int64_t)7 * 24 * 3600 * 1000, &number, err);
        settings->budget_ms = number;
    } else if (!strcmp(key, "precision")) {
        status = share_of(text, &settings->precision, err);
    } else if (!strcmp(key, "settled")) {
        status = share_of(text, &settings->settled, err);
    } else if (!strcmp(key, "trace")) {
        status = number_in(text, 0, MAX_SAMPLES, &number, err);
        if (!status && number && number < ENG_TRACE_SAMPLES)
            status = ENG_FAIL(err, ENG_USAGE, "a traced pass takes %d samples at least, or 0: none",
                              ENG_TRACE_SAMPLES);
        settings->trace = (int)number;
    } else {
        status = number_in(text, 0, INT64_MAX, &number, err);
        settings->seed = (uint64_t)number;
    }
    return status;
}

static EngStatus check_settings(const EngSweepSettings *settings, EngErr *err)
{
    if ((int64_t)settings->pairs * settings->segments <= MAX_SAMPLES) return ENG_OK;
    return ENG_FAIL(err, ENG_USAGE, "pairs %d times segments %d is above %d samples a point",
                    settings->pairs, settings->segments, MAX_SAMPLES);
}

/* Of a whole section: a rule that could never fire is a mistake. */
static EngStatus check_rule(const EngSweepSettings *settings, EngErr *err)
{
    int samples = settings->pairs * settings->segments;
    if (settings->settled && !settings->precision)
        return ENG_FAIL(err, ENG_USAGE, "settled needs a precision to fall short of");
    if (!settings->precision ||
        (samples > ENG_STOP_MIN_PAIRS && settings->segments > ENG_STOP_MIN_SEGMENTS))
        return ENG_OK;
    return ENG_FAIL(
        err, ENG_USAGE,
        "precision ends sampling after %d pairs in %d segments at the earliest, pairs %d "
        "times segments %d is %d: raise segments",
        ENG_STOP_MIN_PAIRS, ENG_STOP_MIN_SEGMENTS, settings->pairs, settings->segments, samples);
}

/* ---- one section -------------------------------------------------------------------------------
 */

static EngSweepAxis *find_axis(EngSweepSection *section, int axis)
{
    for (int i = 0; i < section->n_axes; i++)
        if (section->axes[i].axis == axis) return &section->axes[i];
    return NULL;
}

static EngStatus unknown_key(const EngExperiment *experiment, const char *key, EngErr *err)
{
    const char *names[ENG_MAX_AXES + N_SECTION_KEYS];
    size_t n = 0;
    char hint[96];
    for (int i = 0; i < experiment->n_axes; i++) names[n++] = experiment->axes[i].name;
    for (int i = 0; i < N_SECTION_KEYS; i++) names[n++] = section_keys[i];
    eng_sweep_hint(key, names, n, hint, sizeof hint);
    return ENG_FAIL(err, ENG_USAGE, "unknown axis '%s' of experiment %s%s", key, experiment->name,
                    hint);
}

/* The same where a value is given: an axis of other experiments is no slip of the pen. */
static EngStatus unknown_axis(const EngSweep *sweep, const EngExperiment *experiment,
                              const char *key, EngErr *err)
{
    const EngExperimentList *all = sweep->catalog->experiments;
    char owners[160] = "";
    size_t used = 0;
    for (int i = 0; i < all->n && used < sizeof owners / 2; i++)
        if (eng_experiment_axis(all->items[i], key) >= 0)
            used += (size_t)snprintf(owners + used, sizeof owners - used, "%s%s", used ? ", " : "",
                                     all->items[i]->name);
    if (!used) return unknown_key(experiment, key, err);
    return ENG_FAIL(err, ENG_USAGE, "experiment %s has no axis '%s', which others have: %s",
                    experiment->name, key, owners);
}

static EngStatus add_axis(EngSweep *sweep, EngSweepSection *section, int axis, const char *text,
                          EngErr *err)
{
    EngSweepAxis *added = &section->axes[section->n_axes];
    EngStatus status = eng_axis_values(sweep->catalog, section->experiment, axis, text,
                                       sweep->arena, &added->values, &added->n, err);
    if (status) return status;
    added->axis = axis;
    added->zip = -1;
    section->n_axes++;
    return ENG_OK;
}

/* One name of a zip group; the first one of a group sets the length. */
static EngStatus zip_axis(EngSweepSection *section, const char *name, int group,
                          const EngSweepAxis **leader, EngErr *err)
{
    const EngExperiment *experiment = section->experiment;
    int axis = eng_experiment_axis(experiment, name);
    if (axis < 0) return unknown_key(experiment, name, err);
    EngSweepAxis *member = find_axis(section, axis);
    if (!member) return ENG_FAIL(err, ENG_USAGE, "axis %s has no list in this section", name);
    if (member->zip >= 0) return ENG_FAIL(err, ENG_USAGE, "axis %s is zipped twice", name);
    if (experiment->op >= 0 && !strcmp(name, ENG_AXIS_VARIANT))
        for (int i = 0; i < member->n; i++)
            if (eng_variant_is_group(member->values[i].text))
                return ENG_FAIL(err, ENG_USAGE, "variant '%s' cannot be zipped",
                                member->values[i].text);
    if (*leader && (*leader)->n != member->n)
        return ENG_FAIL(err, ENG_USAGE, "axes of different lengths: %s has %d values, %s has %d",
                        experiment->axes[(*leader)->axis].name, (*leader)->n, name, member->n);
    member->zip = group;
    if (!*leader) *leader = member;
    return ENG_OK;
}

/* "(a, b)" or "(a, b), (c, d)". */
static EngStatus parse_zip(EngSweep *sweep, EngSweepSection *section, const char *text, EngErr *err)
{
    char *at = eng_arena_strdup(sweep->arena, text);
    if (!at) return ENG_FAIL(err, ENG_NO_MEMORY, "out of memory");
    for (int group = 0;; group++) {
        at = eng_trim(at);
        char *close = strchr(at, ')');
        if (*at != '(' || !close)
            return ENG_FAIL(err, ENG_USAGE, "expected (axis, axis) at '%s'", at);
        const EngSweepAxis *leader = NULL;
        int members = 0;
        *close = 0;
        for (char *name = at + 1, *next; name; name = next, members++) {
            char *comma = strchr(name, ',');
            next = comma ? comma + 1 : NULL;
            if (comma) *comma = 0;
            EngStatus status = zip_axis(section, eng_trim(name), group, &leader, err);
            if (status) return status;
        }
        if (members < 2) return ENG_FAIL(err, ENG_USAGE, "a zip needs two axes or more");
        at = eng_trim(close + 1);
        if (!*at) return ENG_OK;
        if (*at != ',') return ENG_FAIL(err, ENG_USAGE, "expected ',' at '%s'", at);
        at++;
    }
}

/* One axis, or several: "variant, threads". The first is the one that tables are about. */
static EngStatus set_compare(EngSweep *sweep, EngSweepSection *section, const char *names,
                             EngErr *err)
{
    EngStr text = {0};
    char *at = eng_arena_strdup(sweep->arena, names);
    if (!at) return ENG_FAIL(err, ENG_NO_MEMORY, "out of memory");
    section->compare = -1;
    section->compare_mask = 0;
    for (char *name = at, *next; name; name = next) {
        char *comma = strchr(name, ',');
        next = comma ? comma + 1 : NULL;
        if (comma) *comma = 0;
        name = eng_trim(name);
        int axis = eng_experiment_axis(section->experiment, name);
        if (axis < 0) {
            eng_str_free(&text);
            return unknown_key(section->experiment, name, err);
        }
        if (section->compare < 0) section->compare = axis;
        if (!(section->compare_mask >> axis & 1))
            eng_str_printf(&text, "%s%s", section->compare_mask ? "," : "", name);
        section->compare_mask |= ENG_AXIS_BIT(axis);
    }
    EngStatus status = eng_str_status(&text, err);
    section->compare_text = status ? NULL : eng_arena_strdup(sweep->arena, text.text);
    eng_str_free(&text);
    if (!status && !section->compare_text) status = ENG_FAIL(err, ENG_NO_MEMORY, "out of memory");
    return status;
}

/* Repeats in a list mean nothing, unless it is zipped. */
static void drop_repeats(EngSweepAxis *axis)
{
    int kept = 0;
    if (axis->zip >= 0 || axis->n > 4096) return; /* long ones: the plan merges points anyway */
    for (int i = 0; i < axis->n; i++) {
        bool seen = false;
        for (int k = 0; k < kept && !seen; k++)
            seen = !strcmp(axis->values[k].text, axis->values[i].text);
        if (!seen) axis->values[kept++] = axis->values[i];
    }
    axis->n = kept;
}

static EngStatus apply_entry(EngSweep *sweep, EngSweepSection *section, const EngSweepEntry *entry,
                             EngErr *err)
{
    const char *key = entry->key;
    int axis = eng_experiment_axis(section->experiment, key);
    if (axis >= 0) return add_axis(sweep, section, axis, entry->value, err);
    if (is_one_of(key, setting_keys, N_SETTINGS)) {
        EngStatus status = set_setting(&section->settings, key, entry->value, err);
        return status ? status : check_settings(&section->settings, err);
    }
    if (!strcmp(key, "compare")) return set_compare(sweep, section, entry->value, err);
    if (!strcmp(key, "where")) {
        section->where_text = entry->value;
        return eng_where_parse(entry->value, section->experiment, sweep->arena, &section->where,
                               err);
    }
    return strcmp(key, "zip") ? unknown_axis(sweep, section->experiment, key, err) : ENG_OK;
}

static EngStatus read_section(EngSweep *sweep, EngSweepSection *section, const EngSweepRaw *raw,
                              EngErr *err)
{
    section->settings = sweep->settings;
    section->compare = eng_experiment_axis(section->experiment, ENG_AXIS_VARIANT);
    section->compare_mask = section->compare < 0 ? 0 : ENG_AXIS_BIT(section->compare);
    section->compare_text = section->compare < 0 ? "" : ENG_AXIS_VARIANT;
    section->where_text = "";
    EngStatus status;
    for (const EngSweepEntry *entry = raw->entries; entry; entry = entry->next)
        if ((status = apply_entry(sweep, section, entry, err)))
            return locate(err, status, sweep, raw->name, entry);
    for (const EngSweepEntry *entry = raw->entries; entry; entry = entry->next)
        if (!strcmp(entry->key, "zip") && (status = parse_zip(sweep, section, entry->value, err)))
            return locate(err, status, sweep, raw->name, entry);
    for (int i = 0; i < section->n_axes; i++) drop_repeats(&section->axes[i]);
    status = section->experiment->counted ? ENG_OK : check_rule(&section->settings, err);
    if (status) eng_err_prefix(err, "%s: [%s]", sweep->source, raw->name);
    return status;
}

/* ---- the whole ---------------------------------------------------------------------------------
 */

static EngStatus read_header(EngSweep *sweep, const EngSweepRaw *raw, EngErr *err)
{
    for (const EngSweepEntry *entry = raw->entries; entry; entry = entry->next) {
        EngStatus status = ENG_OK;
        if (!strcmp(entry->key, "name")) {
            sweep->name = entry->value;
        } else if (!strcmp(entry->key, "question")) {
            sweep->question = entry->value;
        } else if (is_one_of(entry->key, setting_keys, N_SETTINGS)) {
            status = set_setting(&sweep->settings, entry->key, entry->value, err);
            if (!status) status = check_settings(&sweep->settings, err);
        } else {
            char hint[96];
            eng_sweep_hint(entry->key, sweep_keys, N_SWEEP_KEYS, hint, sizeof hint);
            status = ENG_FAIL(err, ENG_USAGE, "unknown key '%s'%s", entry->key, hint);
        }
        if (status) return locate(err, status, sweep, raw->name, entry);
    }
    return ENG_OK;
}

/* "experiment" or "experiment:label". */
static EngStatus name_section(EngSweep *sweep, EngSweepSection *section, const EngSweepRaw *raw,
                              EngErr *err)
{
    char *name = eng_arena_strdup(sweep->arena, raw->name);
    if (!name) return ENG_FAIL(err, ENG_NO_MEMORY, "out of memory");
    char *colon = strchr(name, ':');
    section->label = colon ? eng_trim(colon + 1) : "";
    if (colon) *colon = 0;
    EngStatus status =
        eng_experiment_find(sweep->catalog->experiments, eng_trim(name), &section->experiment, err);
    if (status && raw->line)
        eng_err_prefix(err, "%s:%d: [%s]", sweep->source, raw->line, raw->name);
    return status;
}

static void replace_entry(EngSweepRaw *raw, EngSweepEntry *entry)
{
    EngSweepEntry **link = &raw->entries;
    while (*link && strcmp((*link)->key, entry->key)) link = &(*link)->next;
    entry->next = *link ? (*link)->next : NULL;
    *link = entry;
}

/* One "key=value" of the command line into every section that can have the key. */
static EngStatus override(EngSweep *sweep, EngSweepRaw *const *raws, const char *assignment,
                          EngErr *err)
{
    const char *equals = strchr(assignment, '=');
    if (!equals) return ENG_FAIL(err, ENG_USAGE, "-a %s: expected axis=values", assignment);
    char *key = eng_arena_strdup(sweep->arena, assignment);
    char *value = eng_arena_strdup(sweep->arena, equals + 1);
    if (!key || !value) return ENG_FAIL(err, ENG_NO_MEMORY, "out of memory");
    key[equals - assignment] = 0;
    key = eng_trim(key);
    int taken = 0;
    if (is_one_of(key, setting_keys, N_SETTINGS)) {
        EngStatus status = set_setting(&sweep->settings, key, eng_trim(value), err);
        if (status) return eng_err_prefix(err, "-a %s", assignment), status;
    }
    for (int i = 0; i < sweep->n_sections; i++) {
        if (eng_experiment_axis(sweep->sections[i].experiment, key) < 0 &&
            !is_one_of(key, section_keys, N_SECTION_KEYS))
            continue;
        EngSweepEntry *entry = eng_arena_alloc(sweep->arena, sizeof *entry);
        if (!entry) return ENG_FAIL(err, ENG_NO_MEMORY, "out of memory");
        *entry = (EngSweepEntry){.key = key, .value = eng_trim(value)};
        replace_entry(raws[i], entry);
        taken++;
    }
    if (taken || !sweep->n_sections) return ENG_OK;
    unknown_axis(sweep, sweep->sections[0].experiment, key, err);
    if (sweep->n_sections > 1) eng_err_prefix(err, "no section takes it");
    eng_err_prefix(err, "-a %s", assignment);
    return ENG_USAGE;
}

/* The later of two would win unseen. */
static EngStatus refuse_twice(const char *const *assignments, int n, EngErr *err)
{
    for (int i = 1; i < n; i++) {
        const char *key = assignments[i] + strspn(assignments[i], " \t");
        size_t length = strcspn(key, " \t=");
        for (int k = 0; k < i; k++) {
            const char *before = assignments[k] + strspn(assignments[k], " \t");
            if (strcspn(before, " \t=") == length && !strncmp(key, before, length))
                return ENG_FAIL(err, ENG_USAGE,
                                "-a %s: %.*s was given before, as %s; write all its values as one "
                                "list",
                                assignments[i], (int)length, key, assignments[k]);
        }
    }
    return ENG_OK;
}

/* Combinations of a section's values; axes in lockstep count once. */
static double combinations(const EngSweepSection *section)
{
    double product = 1;
    for (int i = 0; i < section->n_axes; i++) {
        bool first = true;
        for (int k = 0; k < i; k++)
            first =
                first && (section->axes[i].zip < 0 || section->axes[k].zip != section->axes[i].zip);
        if (first) product *= section->axes[i].n;
    }
    return product;
}

static EngStatus check_size(const EngSweep *sweep, EngErr *err)
{
    double total = 0;
    for (int i = 0; i < sweep->n_sections; i++) total += combinations(&sweep->sections[i]);
    if (total <= MAX_POINTS) return ENG_OK;
    return ENG_FAIL(err, ENG_USAGE, "%s: its axes have %.0f combinations, at most %d",
                    sweep->source, total, MAX_POINTS);
}

/* Fills an opened sweep from raw sections. */
static EngStatus interpret(EngSweep *sweep, EngSweepRaw *raw, const char *const *assignments,
                           int n_assignments, EngErr *err)
{
    EngStatus status;
    int n = 0;
    for (EngSweepRaw *r = raw; r; r = r->next) n += strcmp(r->name, "sweep") != 0;
    if (!n) return ENG_FAIL(err, ENG_USAGE, "%s: no section names an experiment", sweep->source);
    sweep->sections = eng_arena_alloc(sweep->arena, (size_t)n * sizeof *sweep->sections);
    EngSweepRaw **raws = eng_arena_alloc(sweep->arena, (size_t)n * sizeof(EngSweepRaw *));
    if (!sweep->sections || !raws)
        return ENG_FAIL(err, ENG_NO_MEMORY, "%s: out of memory", sweep->source);
    for (EngSweepRaw *r = raw; r; r = r->next) {
        if (!strcmp(r->name, "sweep")) {
            if ((status = read_header(sweep, r, err))) return status;
            continue;
        }
        raws[sweep->n_sections] = r;
        if ((status = name_section(sweep, &sweep->sections[sweep->n_sections], r, err)))
            return status;
        sweep->n_sections++;
    }
    if ((status = refuse_twice(assignments, n_assignments, err))) return status;
    for (int i = 0; i < n_assignments; i++)
        if ((status = override(sweep, raws, assignments[i], err))) return status;
    for (int i = 0; i < n; i++)
        if ((status = read_section(sweep, &sweep->sections[i], raws[i], err))) return status;
    return check_size(sweep, err);
}

static EngStatus open_sweep(const char *source, const char *name, const EngCatalog *catalog,
                            EngSweep **out, EngErr *err)
{
    EngArena *arena = eng_arena_create();
    EngSweep *sweep = arena ? eng_arena_alloc(arena, sizeof *sweep) : NULL;
    char *source_copy = sweep ? eng_arena_strdup(arena, source) : NULL;
    char *name_copy = sweep ? eng_arena_strdup(arena, name) : NULL;
    if (!source_copy || !name_copy) {
        eng_arena_destroy(arena);
        return ENG_FAIL(err, ENG_NO_MEMORY, "%s: out of memory", source);
    }
    char *dot = strrchr(name_copy, '.'); /* "folder/name.sweep": the name */
    if (dot && dot != name_copy) *dot = 0;
    *sweep = (EngSweep){.arena = arena,
                        .catalog = catalog,
                        .source = source_copy,
                        .name = name_copy,
                        .question = "",
                        .settings = eng_sweep_defaults};
    *out = sweep;
    return ENG_OK;
}

EngStatus eng_sweep_parse(const char *text, const char *source, const EngCatalog *catalog,
                          const char *const *assignments, int n_assignments, EngSweep **out,
                          EngErr *err)
{
    EngSweep *sweep = NULL;
    EngSweepRaw *raw;
    const char *slash = strrchr(source, '/');
    *out = NULL;
    EngStatus status = open_sweep(source, slash ? slash + 1 : source, catalog, &sweep, err);
    if (!status) status = eng_sweep_ini(text, source, sweep->arena, &raw, err);
    if (!status) status = interpret(sweep, raw, assignments, n_assignments, err);
    if (status)
        eng_sweep_free(sweep);
    else
        *out = sweep;
    return status;
}

EngStatus eng_sweep_read(const char *path, const EngCatalog *catalog,
                         const char *const *assignments, int n_assignments, EngSweep **sweep,
                         EngErr *err)
{
    char *text;
    size_t n;
    *sweep = NULL;
    EngStatus status = eng_file_read(path, &text, &n, err);
    if (status == ENG_NOT_FOUND) return ENG_FAIL(err, ENG_BAD_DATA, "%s: no such sweep file", path);
    if (status) return status;
    if (strlen(text) != n)
        status =
            ENG_FAIL(err, ENG_USAGE, "%s: not a text file (zero byte at %zu)", path, strlen(text));
    else if (!eng_utf8_is_clean((const uint8_t *)text, n))
        status = ENG_FAIL(err, ENG_USAGE, "%s: not UTF-8 text", path);
    else
        status = eng_sweep_parse(text, path, catalog, assignments, n_assignments, sweep, err);
    eng_free(text);
    return status;
}

EngStatus eng_sweep_adhoc(const char *experiment, const EngCatalog *catalog,
                          const char *const *assignments, int n_assignments, EngSweep **out,
                          EngErr *err)
{
    EngSweep *sweep = NULL;
    EngSweepRaw raw = {.name = experiment};
    *out = NULL;
    EngStatus status = open_sweep("command line", experiment, catalog, &sweep, err);
    if (!status) status = interpret(sweep, &raw, assignments, n_assignments, err);
    if (status)
        eng_sweep_free(sweep);
    else
        *out = sweep;
    return status;
}

void eng_sweep_free(EngSweep *sweep)
{
    if (sweep) eng_arena_destroy(sweep->arena);
}

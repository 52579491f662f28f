/* Sweep files through inih. A line reader of our own stands between, because inih tells its handler
 * neither line numbers, nor headings without keys, nor that it cut a line in two. */
#include "bench/core/sweep_parts.h"

#include <ctype.h>
#include <ini.h>
#include <stdio.h>
#include <string.h>

typedef struct Reader {
    const char *at, *source;
    int line;
    bool continues; /* the line just read goes on the value above it */
    bool has_key;   /* a key came since the last heading: an indented line continues it */
    EngArena *arena;
    EngSweepRaw *first, *section;
    EngSweepEntry *entry;
    EngErr *err;
    EngStatus status;
} Reader;

static void out_of_memory(Reader *reader)
{
    reader->status = ENG_FAIL(reader->err, ENG_NO_MEMORY, "%s: out of memory", reader->source);
}

static void fail_line(Reader *reader, const char *what)
{
    if (!reader->status)
        reader->status =
            ENG_FAIL(reader->err, ENG_USAGE, "%s:%d: %s", reader->source, reader->line, what);
}

static void open_section(Reader *reader, const char *open, const char *end)
{
    const char *close = memchr(open, ']', (size_t)(end - open));
    if (!close) {
        fail_line(reader, "section heading without ']'");
        return;
    }
    const char *rest = close + 1;
    while (rest < end && isspace((unsigned char)*rest)) rest++;
    if (rest < end && *rest != ';' && *rest != '#') {
        fail_line(reader, "text after the section heading's ']'");
        return;
    }
    if (close - open - 1 > ENG_SWEEP_SECTION_BYTES) {
        fail_line(reader, "section heading longer than 47 characters");
        return;
    }
    EngSweepRaw *raw = eng_arena_alloc(reader->arena, sizeof *raw);
    char *name = eng_arena_alloc(reader->arena, (size_t)(close - open));
    if (!raw || !name) {
        out_of_memory(reader);
        return;
    }
    memcpy(name, open + 1, (size_t)(close - open - 1));
    *raw = (EngSweepRaw){.name = eng_trim(name), .line = reader->line};
    if (reader->section)
        reader->section->next = raw;
    else
        reader->first = raw;
    reader->section = raw;
    reader->entry = NULL;
    reader->has_key = false;
}

/* " ; comment" at the end of a line: inih cuts it off first lines only. */
static void cut_comment(char *text)
{
    for (; *text; text++)
        if (isspace((unsigned char)*text) && text[1] == ';') {
            *text = 0;
            return;
        }
}

/* Hands inih one line; NULL ends the parse. */
static char *read_line(char *buffer, int size, void *context)
{
    Reader *reader = context;
    if (reader->status || !*reader->at) return NULL;
    const char *start = reader->at, *end = strchr(start, '\n');
    if (!end) end = start + strlen(start);
    reader->at = *end ? end + 1 : end;
    reader->line++;
    size_t n = (size_t)(end - start);
    if (n > ENG_SWEEP_LINE_BYTES || n + 2 > (size_t)size) {
        fail_line(reader, "line longer than 195 characters; go on in the next line, indented");
        return NULL;
    }
    memcpy(buffer, start, n);
    buffer[n] = 0;
    const char *p = start;
    if (reader->line == 1 && !strncmp(p, "\xEF\xBB\xBF", 3)) p += 3;
    while (p < end && isspace((unsigned char)*p)) p++;
    bool comment = p < end && (*p == ';' || *p == '#');
    reader->continues = !comment && p < end && p > start && reader->has_key;
    if (reader->continues) cut_comment(buffer + (p - start));
    if (!reader->continues && p < end && *p == '[') open_section(reader, p, end);
    return reader->status ? NULL : buffer;
}

static bool continue_value(Reader *reader, const char *value)
{
    EngSweepEntry *entry = reader->entry;
    entry->value = eng_arena_printf(reader->arena, "%s %s", entry->value, value);
    if (!entry->value) out_of_memory(reader);
    return entry->value != NULL;
}

/* inih's handler; 0 makes inih note an error, reader->status says which. */
static int on_entry(void *context, const char *section, const char *key, const char *value)
{
    Reader *reader = context;
    (void)section;
    if (reader->status) return 0;
    if (!reader->section) {
        fail_line(reader, "a key before the first [section]");
        return 0;
    }
    if (reader->continues && reader->entry) return continue_value(reader, value);
    EngSweepEntry *entry = eng_arena_alloc(reader->arena, sizeof *entry);
    char *key_copy = eng_arena_strdup(reader->arena, key);
    char *value_copy = eng_arena_strdup(reader->arena, value);
    if (!entry || !key_copy || !value_copy) {
        out_of_memory(reader);
        return 0;
    }
    *entry = (EngSweepEntry){.key = key_copy, .value = value_copy, .line = reader->line};
    for (EngSweepEntry *e = reader->section->entries; e; e = e->next)
        if (!strcmp(e->key, key)) {
            reader->status =
                ENG_FAIL(reader->err, ENG_USAGE, "%s:%d: [%s] %s is given twice (first in line %d)",
                         reader->source, reader->line, reader->section->name, key, e->line);
            return 0;
        }
    if (reader->entry)
        reader->entry->next = entry;
    else
        reader->section->entries = entry;
    reader->entry = entry;
    reader->has_key = true;
    return 1;
}

EngStatus eng_sweep_ini(const char *text, const char *source, EngArena *arena, EngSweepRaw **raw,
                        EngErr *err)
{
    Reader reader = {.at = text, .source = source, .arena = arena, .err = err};
    *raw = NULL;
    int bad_line = ini_parse_stream(read_line, &reader, on_entry, &reader);
    if (reader.status) return reader.status;
    if (bad_line < 0) return ENG_FAIL(err, ENG_NO_MEMORY, "%s: out of memory", source);
    if (bad_line)
        return ENG_FAIL(err, ENG_USAGE, "%s:%d: expected 'key = value' or '[section]'", source,
                        bad_line);
    *raw = reader.first;
    return ENG_OK;
}

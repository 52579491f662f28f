/* See cupti_names.h. */
#include "bench/trace/cupti_names.h"

#include <pthread.h>

#include "base/mem.h"
#include "bench/core/key_table.h"

struct EngCuptiNames {
    pthread_mutex_t lock;
    EngArena *arena;
    EngKeyTable numbers; /* text to its number, as a pointer */
    const char **texts;
    uint64_t n, room;
};

EngCuptiNames *eng_cupti_names_create(void)
{
    EngCuptiNames *names = eng_alloc(sizeof *names);
    if (!names) return NULL;
    names->arena = eng_arena_create();
    if (!names->arena) {
        eng_free(names);
        return NULL;
    }
    pthread_mutex_init(&names->lock, NULL);
    return names;
}

void eng_cupti_names_destroy(EngCuptiNames *names)
{
    if (!names) return;
    eng_key_table_free(&names->numbers);
    eng_free(names->texts);
    eng_arena_destroy(names->arena);
    pthread_mutex_destroy(&names->lock);
    eng_free(names);
}

static uint64_t add_new(EngCuptiNames *names, const char *text)
{
    if (names->n == names->room) {
        uint64_t room = names->room ? 2 * names->room : 64;
        const char **texts =
            eng_realloc(names->texts, names->n * sizeof *texts, room * sizeof *texts);
        if (!texts) return 0;
        names->texts = texts;
        names->room = room;
    }
    char *copy = eng_arena_strdup(names->arena, text);
    void *number = (void *)(uintptr_t)(names->n + 1);
    if (!copy || !eng_key_table_put(&names->numbers, copy, number)) return 0;
    names->texts[names->n++] = copy;
    return names->n;
}

uint64_t eng_cupti_names_add(EngCuptiNames *names, const char *text)
{
    if (!text) return 0;
    pthread_mutex_lock(&names->lock);
    uint64_t number = (uint64_t)(uintptr_t)eng_key_table_get(&names->numbers, text);
    if (!number) number = add_new(names, text);
    pthread_mutex_unlock(&names->lock);
    return number;
}

const char *eng_cupti_names_text(EngCuptiNames *names, uint64_t number)
{
    pthread_mutex_lock(&names->lock);
    const char *text = number && number <= names->n ? names->texts[number - 1] : NULL;
    pthread_mutex_unlock(&names->lock);
    return text;
}

/* Memory on pages of a chosen size; see pages.h. */
#include "kernels/store/pages.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "base/mem.h"

#ifndef MAP_HUGE_SHIFT
#define MAP_HUGE_SHIFT 26
#endif
#define GIANT_SHIFT 30

static const size_t g_page_bytes[ENG_PAGE_KIND_COUNT] = {
    [ENG_PAGES_SMALL] = 4096, [ENG_PAGES_HUGE] = (size_t)2 << 20, [ENG_PAGES_GIANT] = 1u << 30};
static const char *const g_names[ENG_PAGE_KIND_COUNT] = {
    [ENG_PAGES_SMALL] = "4k", [ENG_PAGES_HUGE] = "2m", [ENG_PAGES_GIANT] = "1g"};

const char *eng_page_kind_name(EngPageKind kind)
{
    return (unsigned)kind < ENG_PAGE_KIND_COUNT ? g_names[kind] : NULL;
}

int eng_page_kind_parse(const char *name)
{
    for (int i = 0; i < ENG_PAGE_KIND_COUNT; i++)
        if (!strcmp(g_names[i], name)) return i;
    return -1;
}

static EngStatus map_giant(EngPages *pages, size_t size, EngErr *err)
{
    void *base =
        mmap(NULL, size, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | (GIANT_SHIFT << MAP_HUGE_SHIFT), -1, 0);
    if (base == MAP_FAILED)
        return ENG_FAIL(err, ENG_UNSUPPORTED, "no 1 GiB pages: %zu wanted, fewer are reserved",
                        size >> GIANT_SHIFT);
    pages->base = pages->bytes = base;
    pages->mapped = size;
    return ENG_OK;
}

/* One page more than needed is mapped, so that the start can be aligned; the rest is never touched.
 */
static EngStatus map_advised(EngPages *pages, size_t size, size_t page, EngErr *err)
{
    size_t mapped;
    void *base = MAP_FAILED;
    if (eng_add_size(size, page, &mapped))
        base = mmap(NULL, mapped, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED)
        return ENG_FAIL(err, ENG_NO_MEMORY, "cannot map %zu bytes: %s", size, strerror(errno));
    pages->base = base;
    pages->mapped = mapped;
    pages->bytes = (uint8_t *)base + (page - (uintptr_t)base % page) % page;
    /* Advice: on kernels without huge pages both calls fail, and pages are small. */
    madvise(pages->bytes, size, pages->kind == ENG_PAGES_HUGE ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
    return ENG_OK;
}

EngStatus eng_pages_map(EngPages *pages, size_t n, EngPageKind kind, EngErr *err)
{
    size_t page = g_page_bytes[kind], size;
    *pages = (EngPages){.n = n, .kind = kind};
    if (!n || !eng_add_size(n, page - 1, &size))
        return ENG_FAIL(err, ENG_NO_MEMORY, "cannot map %zu bytes", n);
    size -= size % page;
    return kind == ENG_PAGES_GIANT ? map_giant(pages, size, err)
                                   : map_advised(pages, size, page, err);
}

void eng_pages_unmap(EngPages *pages)
{
    if (pages->base) munmap(pages->base, pages->mapped);
    *pages = (EngPages){.kind = pages->kind};
}

EngStatus eng_pages_drop(EngPages *pages, EngErr *err)
{
    if (!madvise(pages->base, pages->mapped, MADV_DONTNEED)) return ENG_OK;
    return ENG_FAIL(err, ENG_UNSUPPORTED, "%s pages cannot be given back: %s", g_names[pages->kind],
                    strerror(errno));
}

EngStatus eng_pages_resident(const EngPages *pages, double *share, EngErr *err)
{
    unsigned char there[4096];
    size_t small = g_page_bytes[ENG_PAGES_SMALL], all = (pages->n + small - 1) / small, n = 0;
    for (size_t at = 0; at < all; at += sizeof there) {
        size_t some = all - at < sizeof there ? all - at : sizeof there;
        if (mincore(pages->bytes + at * small, some * small, there))
            return ENG_FAIL(err, ENG_IO, "mincore: %s", strerror(errno));
        for (size_t i = 0; i < some; i++) n += there[i] & 1;
    }
    *share = (double)n / (double)all;
    return ENG_OK;
}

double eng_pages_huge_share(const EngPages *pages)
{
    char line[512];
    size_t huge = 0, resident = 0, kib;
    uintptr_t begin, end, first = (uintptr_t)pages->bytes;
    bool inside = false;
    if (pages->kind == ENG_PAGES_GIANT) return 1;
    FILE *file = fopen("/proc/self/smaps", "re");
    if (!file) return 0;
    while (fgets(line, sizeof line, file)) {
        if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " ", &begin, &end) == 2)
            inside = begin <= first && first < end;
        else if (inside && sscanf(line, "Rss: %zu kB", &kib) == 1)
            resident += kib;
        else if (inside && sscanf(line, "AnonHugePages: %zu kB", &kib) == 1)
            huge += kib;
    }
    fclose(file);
    return resident ? (double)huge / (double)resident : 0;
}

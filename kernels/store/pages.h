/* Anonymous memory on pages of a chosen size, for measurements of what page sizes cost.
 *
 * small: 4 KiB pages (huge ones advised against); huge: 2 MiB pages where the kernel grants them
 * (transparent, by advice: huge_bytes tells how many it granted); giant: 1 GiB pages from the
 * reserved pool, or nothing.
 */
#ifndef ENG_KERNELS_STORE_PAGES_H
#define ENG_KERNELS_STORE_PAGES_H

#include <stddef.h>
#include <stdint.h>
#include <engram/status.h>

typedef enum EngPageKind {
    ENG_PAGES_SMALL = 0,
    ENG_PAGES_HUGE,
    ENG_PAGES_GIANT,
    ENG_PAGE_KIND_COUNT
} EngPageKind;

typedef struct EngPages {
    uint8_t *bytes; /* at a multiple of the page size, zeroed */
    size_t n;       /* as asked for */
    void *base;     /* what is mapped: n rounded up to whole pages */
    size_t mapped;
    EngPageKind kind;
} EngPages;

/* "4k", "2m", "1g"; NULL, -1 when unknown. */
const char *eng_page_kind_name(EngPageKind kind);
int eng_page_kind_parse(const char *name);

/* ENG_UNSUPPORTED: no 1 GiB pages are reserved, or too few ("no 1 GiB pages: ..."); ENG_NO_MEMORY.
 * Nothing is touched: pages come with the first write. */
EngStatus eng_pages_map(EngPages *pages, size_t n, EngPageKind kind, EngErr *err);
void eng_pages_unmap(EngPages *pages); /* accepts an empty one */

/* Gives every page back; the next write to one gets another, zeroed. */
EngStatus eng_pages_drop(EngPages *pages, EngErr *err);
/* Share of its 4 KiB that are there (mincore), 0..1. */
EngStatus eng_pages_resident(const EngPages *pages, double *share, EngErr *err);

/* Share of the touched bytes that lie on pages larger than 4 KiB (smaps), 0..1; giant pages: 1. */
double eng_pages_huge_share(const EngPages *pages);

#endif

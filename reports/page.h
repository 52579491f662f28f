/* The page of a report: markdown with {{word name}} placeholders made into HTML. Placeholders are
 * filled in after markdown has become HTML, so that no value of the database can act as markup of
 * either kind.
 */
#ifndef ENG_REPORTS_PAGE_H
#define ENG_REPORTS_PAGE_H

#include "base/str.h"
#include "reports/query.h"

/* Adds the HTML for {{word name}} to out; ENG_NOT_FOUND for a word or name it does not know. */
typedef EngStatus (*EngPageFill)(void *context, const char *word, const char *name, EngStr *out,
                                 EngErr *err);

/* Copies html to out with every placeholder filled. A paragraph that is one {{figure}} or {{table}}
 * is replaced whole. `label` names the file in errors (ENG_BAD_DATA). */
EngStatus eng_page_expand(const char *label, const char *html, EngPageFill fill, void *context,
                          EngStr *out, EngErr *err);
EngStatus eng_page_markdown(const char *label, const char *markdown, EngStr *out, EngErr *err);

/* Text for element content and quoted attributes. */
void eng_page_escape(EngStr *out, const char *text);
/* Text as a data: URI of a media type, so that a page needs no file beside it. */
void eng_page_data_uri(EngStr *out, const char *media_type, const char *text);
/* A table with its header; columns whose cells are all numbers are set flush right. */
void eng_page_table(EngStr *out, const EngCells *cells);

/* The value of "<comment> key: value", a line of a query or script ("-- title: ..."). False when
 * absent. */
bool eng_page_directive(const char *text, const char *comment, const char *key, char *value,
                        size_t size);

#endif

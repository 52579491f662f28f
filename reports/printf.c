/* printf that keeps NULL; see printf.h. */
#include "reports/printf.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"

/* Whether a numeric conversion of the format meets NULL, or no argument at all. */
static bool lacks_number(const char *format, int n, sqlite3_value **arguments)
{
    int at = 1;
    for (const char *p = format; (p = strchr(p, '%')); p++) {
        for (p++; *p && strchr("-+ 0#,!.*123456789l", *p); p++) at += *p == '*';
        if (!*p) return false;
        if (*p == '%' || *p == 'n') continue;
        bool text = strchr("szqQwc", *p) != NULL;
        if (!text && (at >= n || sqlite3_value_type(arguments[at]) == SQLITE_NULL)) return true;
        at++;
    }
    return false;
}

/* SQLite's own does the formatting, under its other name. */
static void strict_printf(sqlite3_context *context, int n, sqlite3_value **arguments)
{
    const char *format = n ? (const char *)sqlite3_value_text(arguments[0]) : NULL;
    sqlite3_stmt *stmt = NULL;
    EngStr call = {0};
    if (!format || lacks_number(format, n, arguments)) return; /* NULL */
    eng_str_add(&call, "SELECT format(?");
    for (int i = 1; i < n; i++) eng_str_add(&call, ",?");
    eng_str_add(&call, ")");
    int rc = call.failed ? SQLITE_NOMEM
                         : sqlite3_prepare_v2(sqlite3_context_db_handle(context), call.text, -1,
                                              &stmt, NULL);
    for (int i = 0; i < n && !rc; i++) rc = sqlite3_bind_value(stmt, i + 1, arguments[i]);
    if (!rc && sqlite3_step(stmt) == SQLITE_ROW)
        sqlite3_result_value(context, sqlite3_column_value(stmt, 0));
    else
        sqlite3_result_error_code(context, rc ? rc : SQLITE_ERROR);
    sqlite3_finalize(stmt);
    eng_str_free(&call);
}

EngStatus eng_printf_register(sqlite3 *sql, const char *path, EngErr *err)
{
    int rc = sqlite3_create_function(sql, "printf", -1, SQLITE_UTF8 | SQLITE_DETERMINISTIC, NULL,
                                     strict_printf, NULL, NULL);
    return rc ? ENG_FAIL(err, ENG_BAD_DATA, "%s: %s", path, sqlite3_errmsg(sql)) : ENG_OK;
}

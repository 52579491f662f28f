/* See db_device.h. */
#include "bench/core/db_device.h"

#include <sqlite3.h>
#include <stdio.h>

#include "bench/core/db_sql.h"

#define DEVICE "s.evidence_json ->> '$.sampling.device."

static int mhz(sqlite3_stmt *row, int column)
{
    return sqlite3_column_type(row, column) == SQLITE_NULL ? -1 : sqlite3_column_int(row, column);
}

static EngStatus read_segments(EngDb *db, const char *run_id, EngDeviceFacts *out, EngErr *err)
{
    sqlite3_stmt *row;
    bool found;
    EngStatus status = eng_db_query(
        db, &row, err,
        "SELECT max(" DEVICE "l2_bytes'), avg(" DEVICE "floor_ns'), min(" DEVICE "sm_mhz'),"
        " max(" DEVICE "sm_mhz'), min(" DEVICE "memory_mhz'), max(" DEVICE "memory_mhz'),"
        " max(" DEVICE "slow'), max(" DEVICE "why') FROM segments s WHERE s.block_id IN"
        " (SELECT block_id FROM run_points WHERE run_id = ?)",
        "s", run_id);
    if (status) return status;
    status = eng_db_step(db, row, &found, err);
    if (status || !found || sqlite3_column_type(row, 0) == SQLITE_NULL) goto out;
    const char *why = (const char *)sqlite3_column_text(row, 7);
    out->used = true;
    out->l2_bytes = sqlite3_column_double(row, 0);
    out->floor_ns = sqlite3_column_double(row, 1);
    out->sm_mhz[0] = mhz(row, 2), out->sm_mhz[1] = mhz(row, 3);
    out->memory_mhz[0] = mhz(row, 4), out->memory_mhz[1] = mhz(row, 5);
    out->slow = sqlite3_column_int64(row, 6);
    snprintf(out->why_no_clocks, sizeof out->why_no_clocks, "%s", why ? why : "");
out:
    sqlite3_reset(row);
    return status;
}

static EngStatus read_sizes(EngDb *db, const char *run_id, EngDeviceFacts *out, EngErr *err)
{
    sqlite3_stmt *row;
    bool found;
    EngStatus status = eng_db_query(
        db, &row, err,
        "SELECT count(*) FILTER (WHERE metric = 'working_set_bytes'),"
        " count(*) FILTER (WHERE metric = 'working_set_bytes' AND median <= ?2),"
        " min(median) FILTER (WHERE metric = 'working_set_bytes'),"
        " max(median) FILTER (WHERE metric = 'working_set_bytes'),"
        " min(median) FILTER (WHERE metric = 'table_bytes' AND axes_json ->> '$.table_at' = "
        "'pinned'),"
        " max(median) FILTER (WHERE metric = 'table_bytes' AND axes_json ->> '$.table_at' = "
        "'pinned')"
        " FROM v_summary WHERE run_id = ?1 AND backend = 'cuda' AND outcome = 'measured'",
        "sd", run_id, out->l2_bytes);
    if (status) return status;
    status = eng_db_step(db, row, &found, err);
    if (!status && found) {
        out->sets = sqlite3_column_int(row, 0), out->fitting = sqlite3_column_int(row, 1);
        for (int i = 0; i < 2; i++) {
            out->set_bytes[i] = sqlite3_column_double(row, 2 + i);
            out->pinned_bytes[i] = sqlite3_column_double(row, 4 + i);
        }
    }
    sqlite3_reset(row);
    return status;
}

EngStatus eng_db_device_facts(EngDb *db, const char *run_id, EngDeviceFacts *out, EngErr *err)
{
    *out = (EngDeviceFacts){0};
    EngStatus status = read_segments(db, run_id, out, err);
    return status || !out->used ? status : read_sizes(db, run_id, out, err);
}

-- What a page can say of the run: one row, whose columns are the keys of {{value KEY}}.
SELECT r.run_id,
    substr(r.run_id, 1, 8) AS run_short,
    r.state,
    r.started_utc AS started,
    r.ended_utc AS ended,
    r.started_utc || coalesce(' to ' || r.ended_utc, ', not ended') AS dates,
    r.sweep_name AS sweep,
    r.sweep_text,
    r.seed,
    (SELECT group_concat(a.value, ' ') FROM json_each(r.command_json) a) AS command,
    m.cpu_model,
    m.cores,
    printf('%.1f GiB', m.memory_bytes / 1073741824.0) AS memory,
    iif(m.cache_bytes IS NULL, 'unknown', printf('%.4g MiB', m.cache_bytes / 1048576.0)) AS cache,
    coalesce(m.gpu, 'none') AS gpu,
    iif(m.description_json ->> '$.simulated' = 1, m.cpu_model || ' (simulated)',
        printf('%s, %d cores, %.1f GiB memory, last-level cache %s, GPU %s', m.cpu_model, m.cores, m.memory_bytes / 1073741824.0,
            iif(m.cache_bytes IS NULL, 'unknown', printf('%.4g MiB', m.cache_bytes / 1048576.0)), coalesce(m.gpu, 'none'))) AS machine,
    c.simulated,
    c.published,
    m.machine_id,
    b.version,
    coalesce(substr(b.commit_id, 1, 12), 'unknown') AS commit_id,
    b.compiler,
    b.flags,
    c.points,
    c.measured,
    c.skipped,
    c.failed,
    c.wrong,
    c.points - c.measured - c.simulated - c.published - c.skipped - c.failed - c.wrong AS not_run,
    c.found,
    (SELECT count(*) FROM run_points l JOIN points p USING (point_key) WHERE l.run_id = r.run_id AND p.is_roof = 1) AS roofs,
    (SELECT count(*) FROM run_points l JOIN samples s USING (block_id, point_key) WHERE l.run_id = r.run_id) AS samples
FROM runs r
JOIN machines m USING (machine_id)
JOIN builds b USING (build_id)
JOIN (SELECT count(*) AS points,
          count(*) FILTER (WHERE bp.outcome = 'measured' AND p.kind IN ('measured', 'imported')) AS measured,
          count(*) FILTER (WHERE bp.outcome = 'measured' AND p.kind = 'simulated') AS simulated,
          count(*) FILTER (WHERE bp.outcome = 'measured' AND p.kind = 'published') AS published,
          count(*) FILTER (WHERE bp.outcome = 'skipped') AS skipped,
          count(*) FILTER (WHERE bp.outcome = 'failed') AS failed,
          count(*) FILTER (WHERE bp.outcome = 'wrong') AS wrong,
          count(*) FILTER (WHERE k.run_id <> :run) AS found
      FROM run_points l
      JOIN block_points bp USING (block_id, point_key)
      JOIN blocks k USING (block_id)
      JOIN points p USING (point_key)
      WHERE l.run_id = :run AND p.is_roof = 0) c
WHERE r.run_id = :run;

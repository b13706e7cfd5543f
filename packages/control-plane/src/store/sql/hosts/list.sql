-- `sandboxes` counts live assignments; `may_finish` those of them that nobody has ordered to end, and only on hosts that are drained. The host of the
-- id $2 comes before those of that name.
SELECT * FROM (
  SELECT host.*, (NOT host.held OR host.late) AS lost,
    CASE
      WHEN NOT host.held OR host.late THEN 'lost'
      WHEN host.drain_started_at IS NOT NULL THEN CASE WHEN host.sandboxes = 0 AND host.pool_held = 0 THEN 'drained' ELSE 'draining' END
      WHEN host.cordoned THEN 'cordoned'
      ELSE 'ready'
    END AS status
  FROM (
    SELECT h.id, h.name, h.region, h.version, h.drivers, h.labels, h.data_plane_url, h.created_at, l.epoch, l.renewed_at,
      (extract(epoch FROM h.created_at) * 1000000)::bigint AS created_micros,
      greatest(0, extract(epoch FROM clock_timestamp() - l.renewed_at))::float8 AS lease_age_seconds,
      l.holder IS NOT NULL AS held, l.renewed_at IS NULL OR clock_timestamp() - l.renewed_at > make_interval(secs => $1::integer / 1000.0) AS late, l.fenced_at,
      c.vcpu_milli_capacity, c.vcpu_milli_reserved, c.memory_mb_capacity, c.memory_mb_reserved, c.disk_gb_capacity, c.disk_gb_reserved,
      c.cordoned, c.drain_started_at, c.drain_deadline_at, (c.drain_deadline_at <= clock_timestamp()) AS drain_over,
      (SELECT count(*) FROM sandglass.assignments a WHERE a.host_id = h.id AND a.released_at IS NULL) AS sandboxes,
      CASE WHEN c.drain_started_at IS NULL THEN 0 ELSE (
        SELECT count(*) FROM sandglass.assignments a JOIN sandglass.sandboxes s ON s.id = a.sandbox_id AND s.generation = a.generation
        WHERE a.host_id = h.id AND a.released_at IS NULL AND s.observed = 'ready'
      ) END AS may_finish,
      pool.target AS pool_target, pool.held AS pool_held, pool.memory_mb AS pool_memory_mb, pool.disk_gb AS pool_disk_gb
    FROM sandglass.hosts h JOIN sandglass.host_leases l ON l.host_id = h.id JOIN sandglass.host_capacity c ON c.host_id = h.id
    CROSS JOIN LATERAL (
      SELECT coalesce(sum(target), 0) AS target, coalesce(sum(held), 0) AS held, coalesce(sum(held * memory_mb), 0) AS memory_mb, coalesce(sum(held * disk_gb), 0) AS disk_gb
      FROM sandglass.pools p WHERE p.host_id = h.id
    ) pool
    WHERE h.removed_at IS NULL
      AND ($2::text IS NULL OR h.id = $2 OR h.name = $2)
      AND ($3::bigint IS NULL OR (h.created_at, h.id) < (timestamptz 'epoch' + $3 * interval '1 microsecond', $4::text))
      AND ($6::jsonb IS NULL OR h.labels @> $6)
  ) host
) told
WHERE $7::text IS NULL OR status = $7
ORDER BY id = $2 DESC, created_at DESC, id DESC
LIMIT $5

SELECT h.id, h.name, h.region, h.version, h.drivers, h.data_plane_url, h.created_at, l.epoch, l.renewed_at,
  (extract(epoch FROM h.created_at) * 1000000)::bigint AS created_micros,
  (l.renewed_at IS NULL OR l.renewed_at < clock_timestamp() - make_interval(secs => $1::integer / 1000.0)) AS lost,
  c.vcpu_milli_capacity, c.vcpu_milli_reserved, c.memory_mb_capacity, c.memory_mb_reserved, c.disk_gb_capacity, c.disk_gb_reserved, c.cordoned,
  (SELECT count(*) FROM sandglass.assignments a WHERE a.host_id = h.id AND a.released_at IS NULL) AS sandboxes,
  pool.target AS pool_target, pool.held AS pool_held, pool.memory_mb AS pool_memory_mb, pool.disk_gb AS pool_disk_gb
FROM sandglass.hosts h JOIN sandglass.host_leases l ON l.host_id = h.id JOIN sandglass.host_capacity c ON c.host_id = h.id
CROSS JOIN LATERAL (
  SELECT coalesce(sum(target), 0) AS target, coalesce(sum(held), 0) AS held, coalesce(sum(held * memory_mb), 0) AS memory_mb, coalesce(sum(held * disk_gb), 0) AS disk_gb
  FROM sandglass.pools p WHERE p.host_id = h.id
) pool
WHERE ($2::text IS NULL OR h.id = $2 OR h.name = $2)
  AND ($3::bigint IS NULL OR (h.created_at, h.id) < (timestamptz 'epoch' + $3 * interval '1 microsecond', $4::text))
ORDER BY h.created_at DESC, h.id DESC
LIMIT $5

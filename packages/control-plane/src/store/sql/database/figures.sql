-- What a scrape of the metrics asks of the database, as one row. Ages are by the database's clock, as the times are.
WITH fleet AS (
  SELECT c.*, (l.holder IS NULL OR l.renewed_at IS NULL OR l.renewed_at < clock_timestamp() - make_interval(secs => $1::integer / 1000.0)) AS lost
  FROM sandglass.host_capacity c JOIN sandglass.host_leases l USING (host_id) JOIN sandglass.hosts h ON h.id = c.host_id
  WHERE h.removed_at IS NULL
), pool AS (
  SELECT coalesce(sum(target), 0)::bigint AS target, coalesce(sum(held), 0)::bigint AS held FROM sandglass.pools JOIN fleet USING (host_id)
)
SELECT
  count(*) FILTER (WHERE lost) AS hosts_lost,
  count(*) FILTER (WHERE NOT lost AND drain_started_at IS NOT NULL) AS hosts_draining,
  count(*) FILTER (WHERE NOT lost AND cordoned AND drain_started_at IS NULL) AS hosts_cordoned,
  count(*) FILTER (WHERE NOT lost AND NOT cordoned) AS hosts_live,
  coalesce(sum(vcpu_milli_capacity) FILTER (WHERE NOT lost), 0)::bigint AS vcpu_milli_capacity,
  coalesce(sum(vcpu_milli_reserved) FILTER (WHERE NOT lost), 0)::bigint AS vcpu_milli_reserved,
  coalesce(sum(memory_mb_capacity) FILTER (WHERE NOT lost), 0)::bigint AS memory_mb_capacity,
  coalesce(sum(memory_mb_reserved) FILTER (WHERE NOT lost), 0)::bigint AS memory_mb_reserved,
  coalesce(sum(disk_gb_capacity) FILTER (WHERE NOT lost), 0)::bigint AS disk_gb_capacity,
  coalesce(sum(disk_gb_reserved) FILTER (WHERE NOT lost), 0)::bigint AS disk_gb_reserved,
  (SELECT count(*) FROM sandglass.assignments a JOIN fleet ON fleet.host_id = a.host_id AND fleet.lost WHERE a.released_at IS NULL) AS lost_host_sandboxes,
  (SELECT target FROM pool) AS pool_target,
  (SELECT held FROM pool) AS pool_held,
  (SELECT coalesce(extract(epoch FROM clock_timestamp() - min(coalesce(wanted_since, created_at))), 0)::float8 FROM sandglass.sandboxes
    WHERE observed = 'pending' AND desired = 'running' AND (retry_at IS NULL OR retry_at <= clock_timestamp())) AS oldest_pending_seconds,
  coalesce((SELECT extract(epoch FROM clock_timestamp() - uuid_extract_timestamp(id))::float8 FROM sandglass.outbox ORDER BY id LIMIT 1), 0) AS oldest_wake_seconds,
  coalesce((SELECT extract(epoch FROM clock_timestamp() - at)::float8 FROM sandglass.events WHERE position IS NULL ORDER BY appended LIMIT 1), 0)
    AS oldest_unsealed_seconds
FROM fleet

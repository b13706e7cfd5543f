-- What hosts offer, by region and label `class`.
WITH fleet AS (
  SELECT h.id, h.region, h.labels ->> 'class' AS class, c.*,
    (l.holder IS NULL OR l.renewed_at IS NULL OR l.renewed_at < clock_timestamp() - make_interval(secs => $1::integer / 1000.0)) AS lost
  FROM sandglass.hosts h JOIN sandglass.host_leases l ON l.host_id = h.id JOIN sandglass.host_capacity c ON c.host_id = h.id
  WHERE h.removed_at IS NULL
), told AS (
  SELECT *, NOT lost AND NOT cordoned AS ready FROM fleet
), pool AS (
  SELECT t.region, t.class, sum(p.target)::bigint AS target, sum(p.held)::bigint AS held FROM told t JOIN sandglass.pools p ON p.host_id = t.id GROUP BY t.region, t.class
)
SELECT t.region, t.class,
  count(*) FILTER (WHERE t.ready) AS hosts_ready, count(*) FILTER (WHERE NOT t.lost AND t.cordoned) AS hosts_cordoned, count(*) FILTER (WHERE t.lost) AS hosts_lost,
  coalesce(sum(vcpu_milli_capacity) FILTER (WHERE ready), 0)::bigint AS vcpu_milli_offered,
  coalesce(sum(memory_mb_capacity) FILTER (WHERE ready), 0)::bigint AS memory_mb_offered,
  coalesce(sum(disk_gb_capacity) FILTER (WHERE ready), 0)::bigint AS disk_gb_offered,
  coalesce(sum(vcpu_milli_reserved) FILTER (WHERE ready), 0)::bigint AS vcpu_milli_reserved,
  coalesce(sum(memory_mb_reserved) FILTER (WHERE ready), 0)::bigint AS memory_mb_reserved,
  coalesce(sum(disk_gb_reserved) FILTER (WHERE ready), 0)::bigint AS disk_gb_reserved,
  coalesce(max(vcpu_milli_capacity - vcpu_milli_reserved) FILTER (WHERE ready), 0) AS vcpu_milli_free,
  coalesce(max(memory_mb_capacity - memory_mb_reserved) FILTER (WHERE ready), 0) AS memory_mb_free,
  coalesce(max(disk_gb_capacity - disk_gb_reserved) FILTER (WHERE ready), 0) AS disk_gb_free,
  coalesce(max(pool.target), 0) AS pool_target, coalesce(max(pool.held), 0) AS pool_held
FROM told t LEFT JOIN pool ON pool.region = t.region AND pool.class IS NOT DISTINCT FROM t.class
GROUP BY t.region, t.class ORDER BY t.region, t.class NULLS FIRST

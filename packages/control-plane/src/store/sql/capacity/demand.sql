-- What waits for a host, by region, isolation and reason. A pause before another try is no wait for a host.
SELECT region, driver, coalesce(split_part(unschedulable_reason, ':', 1), 'not_looked_at') AS code, count(*) AS waiting,
  sum(vcpu_milli)::bigint AS vcpu_milli, sum(memory_mb)::bigint AS memory_mb, sum(disk_gb)::bigint AS disk_gb,
  max(vcpu_milli) AS vcpu_milli_largest, max(memory_mb) AS memory_mb_largest, max(disk_gb) AS disk_gb_largest,
  greatest(0, extract(epoch FROM clock_timestamp() - min(coalesce(wanted_since, created_at))))::float8 AS oldest_seconds
FROM sandglass.sandboxes
WHERE observed = 'pending' AND desired = 'running' AND (retry_at IS NULL OR retry_at <= clock_timestamp())
GROUP BY region, driver, code ORDER BY region, driver, waiting DESC, code

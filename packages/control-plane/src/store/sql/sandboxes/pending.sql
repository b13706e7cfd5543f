-- What placement may choose for: no live assignment (an earlier one may still wait for its proof of end) and no pause to sit out. Tenants take
-- turns, so that one tenant's burst does not hold up another's single create. The host of a run that is over is as good as any other.
SELECT id, generation, region, driver, template_digest, vcpu_milli, memory_mb, disk_gb, CASE WHEN start_attempts > 0 THEN host_id END AS host_id,
  unschedulable_reason, pool_key
FROM (
  SELECT s.*, coalesce(wanted_since, created_at) AS since, row_number() OVER (PARTITION BY tenant_id ORDER BY coalesce(wanted_since, created_at)) AS turn
  FROM sandglass.sandboxes s
  WHERE observed = 'pending' AND desired = 'running'
    AND (retry_at IS NULL OR retry_at <= clock_timestamp())
    AND NOT EXISTS (SELECT FROM sandglass.assignments a WHERE a.sandbox_id = s.id AND a.released_at IS NULL)
) waiting
ORDER BY turn, since
LIMIT $1

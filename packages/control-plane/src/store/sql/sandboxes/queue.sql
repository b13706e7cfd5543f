-- What waits for a host, by tenant: the $1 that have waited longest of each, with what the tenant holds by what was placed (its quota without what waits) and
-- its weight; of all of them $3, the first of every tenant before the second of any. No live assignment (an earlier one may still wait for its proof of end),
-- no pause to sit out, and of no kind ($2) that is known to find no room. Tenants are found one after the other in the index of what is pending, never by
-- what there was before.
WITH RECURSIVE waiting AS (
  (SELECT tenant_id FROM sandglass.sandboxes WHERE observed = 'pending' AND desired = 'running' ORDER BY tenant_id LIMIT 1)
  UNION ALL
  SELECT (SELECT s.tenant_id FROM sandglass.sandboxes s WHERE s.observed = 'pending' AND s.desired = 'running' AND s.tenant_id > w.tenant_id ORDER BY s.tenant_id LIMIT 1)
  FROM waiting w WHERE w.tenant_id IS NOT NULL
)
SELECT w.tenant_id, q.fair_weight, head.*,
  q.vcpu_milli_used - own.vcpu_milli AS vcpu_milli_held, q.memory_mb_used - own.memory_mb AS memory_mb_held, q.disk_gb_used - own.disk_gb AS disk_gb_held
FROM waiting w
JOIN sandglass.quotas q ON q.tenant_id = w.tenant_id
CROSS JOIN LATERAL (
  SELECT coalesce(sum(vcpu_milli), 0)::bigint AS vcpu_milli, coalesce(sum(memory_mb), 0)::bigint AS memory_mb, coalesce(sum(disk_gb), 0)::bigint AS disk_gb
  FROM sandglass.sandboxes s WHERE s.tenant_id = w.tenant_id AND s.observed = 'pending' AND s.desired = 'running'
) own
CROSS JOIN LATERAL (
  SELECT s.id, s.vcpu_milli, s.memory_mb, s.disk_gb, row_number() OVER (ORDER BY coalesce(s.wanted_since, s.created_at)) AS turn,
    (extract(epoch FROM clock_timestamp() - coalesce(s.wanted_since, s.created_at)) * 1000)::float8 AS age_ms
  FROM sandglass.sandboxes s
  WHERE s.tenant_id = w.tenant_id AND s.observed = 'pending' AND s.desired = 'running'
    AND (s.retry_at IS NULL OR s.retry_at <= clock_timestamp())
    AND sandglass.placement_kind(s) <> ALL ($2::text[])
    AND NOT EXISTS (SELECT FROM sandglass.assignments a WHERE a.sandbox_id = s.id AND a.released_at IS NULL)
  ORDER BY coalesce(s.wanted_since, s.created_at)
  LIMIT $1
) head
ORDER BY head.turn
LIMIT $3

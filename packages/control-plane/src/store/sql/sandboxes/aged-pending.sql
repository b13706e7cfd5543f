-- What has waited for room longer than $1 ms and for which room is kept, whoever places it: the $2 oldest. What has waited ten minutes takes its turn without
-- that (as in pools/pressure.sql), or one that never fits would keep a host for ever.
SELECT s.id, s.tenant_id, s.generation, s.region, s.driver, s.template_digest, s.vcpu_milli, s.memory_mb, s.disk_gb, s.unschedulable_reason, s.pool_key,
  NULL AS host_id, s.restarts > 0 AS recovers, sandglass.placement_kind(s) AS kind, true AS is_aged
FROM sandglass.sandboxes s
WHERE s.observed = 'pending' AND s.desired = 'running' AND s.unschedulable_reason LIKE 'no_capacity:%'
  AND coalesce(s.wanted_since, s.created_at) BETWEEN clock_timestamp() - interval '10 min' AND clock_timestamp() - make_interval(secs => $1::integer / 1000.0)
  AND NOT EXISTS (SELECT FROM sandglass.assignments a WHERE a.sandbox_id = s.id AND a.released_at IS NULL)
ORDER BY coalesce(s.wanted_since, s.created_at), s.id
LIMIT $2

-- Of these, what still waits and no other scheduler is placing, locked until it is placed: so that schedulers split the work. What makes a placement right is
-- the generation in the statement that moves it (guard: place.gen).
SELECT s.id, s.tenant_id, s.generation, s.region, s.driver, s.template_digest, s.vcpu_milli, s.memory_mb, s.disk_gb, s.unschedulable_reason, s.pool_key,
  -- The host of a run that is over is as good as any other.
  CASE WHEN s.start_attempts > 0 THEN s.host_id END AS host_id,
  s.restarts > 0 AS recovers, sandglass.placement_kind(s) AS kind,
  coalesce(s.wanted_since, s.created_at) < clock_timestamp() - make_interval(secs => $2::integer / 1000.0) AS is_aged
FROM unnest($1::text[]) WITH ORDINALITY AS wanted (id, turn) JOIN sandglass.sandboxes s ON s.id = wanted.id
WHERE s.observed = 'pending' AND s.desired = 'running' AND (s.retry_at IS NULL OR s.retry_at <= clock_timestamp())
  AND NOT EXISTS (SELECT FROM sandglass.assignments a WHERE a.sandbox_id = s.id AND a.released_at IS NULL)
ORDER BY wanted.turn
FOR NO KEY UPDATE OF s SKIP LOCKED

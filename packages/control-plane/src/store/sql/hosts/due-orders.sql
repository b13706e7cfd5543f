-- guard: mint.read: the term of a ticket (`seq`) comes from the very read that found the assignment.
-- A start is due while the live assignment is the current generation of its host's epoch and not proved; an end is due while an unreleased assignment exists
-- and the sandbox has moved past its generation. $2 narrows to some sandboxes.
SELECT l.epoch, l.seq, due.*
FROM sandglass.host_leases l
LEFT JOIN LATERAL (
  SELECT a.generation AS assignment_generation, s.generation, s.observed, s.id AS sandbox_id, s.driver, s.template_name, s.template_digest,
    s.network_mode, s.env, s.traceparent, a.vcpu_milli, a.memory_mb, a.disk_gb, a.epoch AS assignment_epoch, a.pool_key, a.pool_version, a.pool_target
  FROM sandglass.assignments a JOIN sandglass.sandboxes s ON s.id = a.sandbox_id
  WHERE a.host_id = l.host_id AND a.released_at IS NULL
    AND ($2::text[] IS NULL OR a.sandbox_id = ANY ($2))
    AND (a.generation < s.generation OR (s.observed IN ('assigned', 'starting') AND a.epoch = l.epoch))
  ORDER BY a.created_at
) due ON true
-- A removed host has no lease, and nothing is due to it.
WHERE l.host_id = $1 AND l.holder IS NOT NULL

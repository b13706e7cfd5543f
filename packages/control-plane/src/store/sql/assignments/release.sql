-- guard: rf.gen (names the assignment that was read), release.proof (called only with a proof of end or a fenced epoch)
WITH released AS (
  UPDATE sandglass.assignments SET released_at = clock_timestamp(), released_by = $2
  WHERE id = $1 AND released_at IS NULL
  RETURNING sandbox_id, generation, host_id, vcpu_milli, memory_mb, disk_gb
), usage AS (
  UPDATE sandglass.usage_intervals u SET closed_at = clock_timestamp()
  FROM released r WHERE u.sandbox_id = r.sandbox_id AND u.generation = r.generation AND u.closed_at IS NULL
)
UPDATE sandglass.host_capacity c SET
  vcpu_milli_reserved = c.vcpu_milli_reserved - r.vcpu_milli,
  memory_mb_reserved = c.memory_mb_reserved - r.memory_mb,
  disk_gb_reserved = c.disk_gb_reserved - r.disk_gb
FROM released r WHERE c.host_id = r.host_id
RETURNING c.host_id

-- As insert.sql, with a unit of the host's pool: its target and what it holds fall by one, and the assignment keeps the version that this made, so that
-- ticket and end order can carry it (guard: pool.ticket). What is reserved of memory and disk moves from the pool to the sandbox and stays the same.
WITH lease AS (
  SELECT host_id, epoch, seq FROM sandglass.host_leases WHERE host_id = $3 AND epoch = $4 AND holder IS NOT NULL FOR SHARE
), claimed AS (
  UPDATE sandglass.pools p SET target = target - 1, held = held - 1, version = version + 1
  FROM lease
  WHERE p.host_id = lease.host_id AND p.key = $5
    -- guard: claim.epoch
    AND p.epoch = $4
    -- guard: claim.tgt
    AND p.target >= 1
  RETURNING p.version, p.target
), inserted AS (
  INSERT INTO sandglass.assignments (id, kind, tenant_id, sandbox_id, generation, host_id, epoch, vcpu_milli, memory_mb, disk_gb, pool_key, pool_version, pool_target)
  SELECT $1, 'sandbox', s.tenant_id, s.id, s.generation, lease.host_id, lease.epoch, s.vcpu_milli, s.memory_mb, s.disk_gb, $5, claimed.version, claimed.target
  FROM sandglass.sandboxes s, lease, claimed WHERE s.id = $2
  RETURNING pool_key, pool_version, pool_target
)
SELECT (SELECT epoch FROM lease) AS epoch, (SELECT seq FROM lease) AS seq, 1 / (SELECT count(*) FROM inserted) AS made, inserted.*
FROM (VALUES (1)) AS one LEFT JOIN inserted ON true

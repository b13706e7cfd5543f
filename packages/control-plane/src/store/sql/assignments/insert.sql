-- What the sandbox is and asks for is read from its row, which this transaction has moved. The lease is read FOR SHARE: the assignment carries the epoch
-- that the host holds at this moment, and its ticket the sequence (guard: mint.read). Fails when it holds another
-- epoch, or none (guard: place.held: the epoch behind a fence is nobody's, and its end would never be proved): the division breaks the transaction
-- (database.ts, foundNothing).
-- guard: place.one is the partial unique index that this insert can run into.
WITH lease AS (
  SELECT host_id, epoch, seq FROM sandglass.host_leases WHERE host_id = $3 AND epoch = $4 AND holder IS NOT NULL FOR SHARE
), inserted AS (
  INSERT INTO sandglass.assignments (id, kind, tenant_id, sandbox_id, generation, host_id, epoch, vcpu_milli, memory_mb, disk_gb)
  SELECT $1, 'sandbox', s.tenant_id, s.id, s.generation, lease.host_id, lease.epoch, s.vcpu_milli, s.memory_mb, s.disk_gb
  FROM sandglass.sandboxes s, lease WHERE s.id = $2
  RETURNING pool_key, pool_version, pool_target
)
SELECT (SELECT epoch FROM lease) AS epoch, (SELECT seq FROM lease) AS seq, 1 / (SELECT count(*) FROM inserted) AS made, inserted.*
FROM (VALUES (1)) AS one LEFT JOIN inserted ON true

-- Fails without a row: the division breaks the transaction (database.ts, foundNothing).
-- $5: 0 for a new sandbox, 1 for one whose kept record is wanted running again; that is never refused for what is kept.
-- The last lock of a create, held shortest. Exact under races: the row is locked and checked in the same statement.
WITH taken AS (
  UPDATE sandglass.quotas SET
    running_sandboxes_used = running_sandboxes_used + 1,
    vcpu_milli_used = vcpu_milli_used + $2,
    memory_mb_used = memory_mb_used + $3,
    disk_gb_used = disk_gb_used + $4,
    kept_sandboxes_used = kept_sandboxes_used - $5::integer
  WHERE tenant_id = $1
    AND running_sandboxes_used + 1 <= running_sandboxes_limit
    AND vcpu_milli_used + $2 <= vcpu_milli_limit
    AND memory_mb_used + $3 <= memory_mb_limit
    AND disk_gb_used + $4 <= disk_gb_limit
    AND ($5::integer = 1 OR kept_sandboxes_used < kept_sandboxes_limit)
  RETURNING tenant_id
)
SELECT 1 / count(*) AS taken FROM taken

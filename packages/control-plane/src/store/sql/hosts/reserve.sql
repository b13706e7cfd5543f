-- Fails without a row: the division breaks the transaction (database.ts, foundNothing).
-- guard: place.cap, claim.cordon (a claim reserves its vCPU here; memory and disk come with the unit)
WITH reserved AS (
  UPDATE sandglass.host_capacity SET
    vcpu_milli_reserved = vcpu_milli_reserved + $2,
    memory_mb_reserved = memory_mb_reserved + $3,
    disk_gb_reserved = disk_gb_reserved + $4
  WHERE host_id = $1 AND NOT cordoned
    AND vcpu_milli_reserved + $2 <= vcpu_milli_capacity
    AND memory_mb_reserved + $3 <= memory_mb_capacity
    AND disk_gb_reserved + $4 <= disk_gb_capacity
  RETURNING host_id
)
SELECT 1 / count(*) AS reserved FROM reserved

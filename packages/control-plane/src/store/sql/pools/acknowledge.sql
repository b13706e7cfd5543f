-- The host has no more members than the target of this version: the units beyond it are free. guard: pool.ack (of the current version only)
WITH acknowledged AS (
  UPDATE sandglass.pools SET acked_version = version, held = target
  WHERE host_id = $1 AND key = $2 AND version = $3 AND (acked_version < version OR held > target)
  RETURNING host_id, OLD.held - NEW.held AS freed, memory_mb, disk_gb
), given_back AS (
  UPDATE sandglass.host_capacity c SET
    memory_mb_reserved = c.memory_mb_reserved - a.freed * a.memory_mb,
    disk_gb_reserved = c.disk_gb_reserved - a.freed * a.disk_gb
  FROM acknowledged a WHERE c.host_id = a.host_id AND a.freed > 0
)
SELECT freed FROM acknowledged

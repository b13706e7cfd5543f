-- The host began anew, or was fenced: no member of an earlier epoch counts, and what was held for them is free. Only rows of an earlier epoch than the host's,
-- which lock-fenced.sql has locked.
WITH lease AS (
  SELECT host_id, epoch FROM sandglass.host_leases WHERE host_id = $1 FOR SHARE
), fenced AS (
  UPDATE sandglass.pools p SET epoch = lease.epoch, target = 0, held = 0, version = p.version + 1
  FROM lease WHERE p.host_id = lease.host_id AND p.epoch < lease.epoch
  RETURNING OLD.held * p.memory_mb AS memory_mb, OLD.held * p.disk_gb AS disk_gb
), given_back AS (
  UPDATE sandglass.host_capacity c SET
    memory_mb_reserved = c.memory_mb_reserved - (SELECT coalesce(sum(memory_mb), 0) FROM fenced),
    disk_gb_reserved = c.disk_gb_reserved - (SELECT coalesce(sum(disk_gb), 0) FROM fenced)
  WHERE c.host_id = $1 AND EXISTS (SELECT FROM fenced)
)
SELECT count(*) AS fenced FROM fenced

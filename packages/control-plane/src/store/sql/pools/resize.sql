-- From the version that the plan was made for. What a shrink takes from the target stays held until the host acknowledges the new version; what a grow
-- adds beyond what is held is reserved by the caller, in this transaction (guard: place.cap). What is held is read by the lock: an
-- acknowledgement that was under way makes it less under the same version, and RETURNING OLD would tell what it was before (lock-fenced.sql).
WITH locked AS (
  SELECT host_id, key, held FROM sandglass.pools WHERE host_id = $1 AND key = $2 AND epoch = $3 AND version = $4 AND target <> $5 FOR UPDATE
)
UPDATE sandglass.pools p SET target = $5, held = greatest(locked.held, $5), version = p.version + 1
FROM locked WHERE p.host_id = locked.host_id AND p.key = locked.key
RETURNING greatest(locked.held, $5) - locked.held AS added, p.memory_mb, p.disk_gb

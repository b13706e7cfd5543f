-- From the version that the plan was made for. What a shrink takes from the target stays held until the host acknowledges the new version; what a grow
-- adds beyond what is held is reserved by the caller, in this transaction (guard: place.cap).
UPDATE sandglass.pools SET target = $5, held = greatest(held, $5), version = version + 1
WHERE host_id = $1 AND key = $2 AND epoch = $3 AND version = $4 AND target <> $5
RETURNING NEW.held - OLD.held AS added, memory_mb, disk_gb

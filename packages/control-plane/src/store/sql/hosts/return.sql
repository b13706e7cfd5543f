-- A host registers; one that was removed is there again. Locks the row before the lease, as operators do (lock-named.sql), so that a removal is over or has not
-- begun: behind this statement it would leave a host that holds its lease and is in no list.
UPDATE sandglass.hosts SET removed_at = NULL WHERE id = $1 RETURNING OLD.removed_at IS NOT NULL AS was_removed

-- The host of an id, or every host of a name. Operators' changes of one host come one after another: first lock of their transactions, then the lease, then
-- the capacity. Assignments that refer to the row are not held up.
SELECT id, name FROM sandglass.hosts
WHERE removed_at IS NULL AND (id = $1 OR name = $1)
ORDER BY id = $1 DESC, id LIMIT $2
FOR NO KEY UPDATE

SELECT position, type, sandbox_id, generation, reason, at
FROM sandglass.events
WHERE tenant_id = $1 AND position > $2
ORDER BY position
LIMIT $3

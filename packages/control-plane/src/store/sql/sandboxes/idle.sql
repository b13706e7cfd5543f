SELECT id, tenant_id FROM sandglass.sandboxes
WHERE idle_at <= clock_timestamp()
ORDER BY idle_at LIMIT $1

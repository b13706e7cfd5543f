SELECT id, tenant_id FROM sandglass.sandboxes
WHERE desired <> 'deleted' AND expires_at <= clock_timestamp()
ORDER BY expires_at LIMIT $1

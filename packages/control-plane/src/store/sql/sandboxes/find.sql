SELECT * FROM sandglass.sandboxes
WHERE tenant_id = $1 AND (id = $2 OR (name = $2 AND desired <> 'deleted'))

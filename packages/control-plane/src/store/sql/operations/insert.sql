INSERT INTO sandglass.operations (id, tenant_id, kind, status, sandbox_id) VALUES ($1, $2, $3, 'pending', $4)

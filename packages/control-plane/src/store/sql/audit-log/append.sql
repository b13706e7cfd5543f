INSERT INTO sandglass.audit_log (tenant_id, actor_type, actor_id, action, subject, request_id, detail) VALUES ($1, $2, $3, $4, $5, $6, $7)

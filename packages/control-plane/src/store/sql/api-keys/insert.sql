INSERT INTO sandglass.api_keys (id, tenant_id, name, role, sha256, expires_at)
VALUES ($1, $2, $3, $4, $5, CASE WHEN $6::integer IS NOT NULL THEN clock_timestamp() + make_interval(secs => $6::integer) END)
ON CONFLICT (sha256) DO NOTHING
RETURNING *

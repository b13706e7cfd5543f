UPDATE sandglass.api_keys SET revoked_at = coalesce(revoked_at, clock_timestamp())
WHERE id = $1 AND ($2::text IS NULL OR tenant_id = $2)
RETURNING id, tenant_id

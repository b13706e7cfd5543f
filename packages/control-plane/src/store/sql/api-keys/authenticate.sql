SELECT k.id, k.tenant_id, k.role, k.actor_type, t.name AS tenant_name
FROM sandglass.api_keys k JOIN sandglass.tenants t ON t.id = k.tenant_id
WHERE k.sha256 = $1 AND k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > clock_timestamp())

SELECT body_sha256, subject_id FROM sandglass.idempotency_keys WHERE tenant_id = $1 AND route = $2 AND key_sha256 = $3

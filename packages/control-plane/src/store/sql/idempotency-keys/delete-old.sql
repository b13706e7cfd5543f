DELETE FROM sandglass.idempotency_keys
WHERE (tenant_id, route, key_sha256) IN (
  SELECT tenant_id, route, key_sha256 FROM sandglass.idempotency_keys
  WHERE created_at <= clock_timestamp() - make_interval(secs => $1::integer) ORDER BY created_at LIMIT $2
)
RETURNING 1 AS deleted

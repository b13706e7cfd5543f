-- No tenant: an operator, who sees all.
SELECT *, (extract(epoch FROM created_at) * 1000000)::bigint AS created_micros
FROM sandglass.api_keys
WHERE ($1::text IS NULL OR tenant_id = $1)
  AND ($2::bigint IS NULL OR (created_at, id) < (timestamptz 'epoch' + $2 * interval '1 microsecond', $3::text))
ORDER BY created_at DESC, id DESC
LIMIT $4

SELECT *, (extract(epoch FROM created_at) * 1000000)::bigint AS created_micros,
  CASE WHEN used_at IS NOT NULL THEN 'used' WHEN revoked_at IS NOT NULL THEN 'revoked' WHEN expires_at <= clock_timestamp() THEN 'expired' ELSE 'open' END AS status
FROM sandglass.join_tokens
WHERE $1::bigint IS NULL OR (created_at, id) < (timestamptz 'epoch' + $1 * interval '1 microsecond', $2::text)
ORDER BY created_at DESC, id DESC
LIMIT $3

-- guard: join.once: of two machines with one token the second waits here, and finds it used.
SELECT id, role, labels, used_by, used_key, expires_at <= clock_timestamp() AS is_past,
  CASE WHEN used_at IS NOT NULL THEN 'used' WHEN revoked_at IS NOT NULL THEN 'revoked' WHEN expires_at <= clock_timestamp() THEN 'expired' ELSE 'open' END AS status
FROM sandglass.join_tokens WHERE sha256 = $1 FOR UPDATE

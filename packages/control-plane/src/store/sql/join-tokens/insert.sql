-- A bootstrap token is there already when its file is read again.
INSERT INTO sandglass.join_tokens (id, sha256, role, labels, expires_at)
VALUES ($1, $2, $3, $4, clock_timestamp() + make_interval(secs => $5::integer))
ON CONFLICT (sha256) DO NOTHING
RETURNING *, 'open' AS status

-- guard: create.unique. Waits for a transaction that has the same key and is still open. A key past its life is as if it had never been.
INSERT INTO sandglass.idempotency_keys AS known (tenant_id, route, key_sha256, body_sha256, subject_id)
VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (tenant_id, route, key_sha256) DO UPDATE
SET body_sha256 = excluded.body_sha256, subject_id = excluded.subject_id, created_at = clock_timestamp()
WHERE known.created_at <= clock_timestamp() - make_interval(secs => $6::integer)
RETURNING subject_id

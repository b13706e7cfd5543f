-- The one pending operation of this kind, if there is one.
UPDATE sandglass.operations SET status = CASE WHEN $3::jsonb IS NULL THEN 'succeeded' ELSE 'failed' END, problem = $3, ended_at = clock_timestamp()
WHERE sandbox_id = $1 AND kind = $2 AND status = 'pending'
RETURNING id

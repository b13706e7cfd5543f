-- Once, whoever comes first.
UPDATE sandglass.operations SET status = CASE WHEN $2::jsonb IS NULL THEN 'succeeded' ELSE 'failed' END, problem = $2, ended_at = clock_timestamp()
WHERE id = $1 AND status = 'pending'
RETURNING id

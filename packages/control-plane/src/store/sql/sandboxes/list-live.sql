-- What is not deleted, newest first, by a key that never changes. A statement of its own, so that also a plan for any values reads the index of what is
-- not deleted: the quota bounds that, by what may run and by what is kept, whatever the history and the filter. A page starts behind the (time, id) of the cursor.
SELECT *, (extract(epoch FROM created_at) * 1000000)::bigint AS created_micros
FROM sandglass.sandboxes
WHERE tenant_id = $1
  AND desired <> 'deleted'
  AND ($2::text IS NULL OR observed = $2)
  AND ($3::text IS NULL OR template_name = $3)
  AND ($4::text IS NULL OR name = $4)
  AND ($5::jsonb IS NULL OR metadata @> $5)
  AND ($6::bigint IS NULL OR (created_at, id) < (timestamptz 'epoch' + $6 * interval '1 microsecond', $7::text))
ORDER BY created_at DESC, id DESC
LIMIT $8

-- The one of that name that is not deleted, if the other filters let it through: as list-live.sql, by the index of names and not through all that lives.
SELECT *, (extract(epoch FROM created_at) * 1000000)::bigint AS created_micros
FROM sandglass.sandboxes
WHERE tenant_id = $1
  AND desired <> 'deleted'
  AND ($2::text IS NULL OR observed = $2)
  AND ($3::text IS NULL OR template_name = $3)
  AND name = $4::text
  AND ($5::jsonb IS NULL OR metadata @> $5)
  AND ($6::bigint IS NULL OR (created_at, id) < (timestamptz 'epoch' + $6 * interval '1 microsecond', $7::text))
ORDER BY created_at DESC, id DESC
LIMIT $8

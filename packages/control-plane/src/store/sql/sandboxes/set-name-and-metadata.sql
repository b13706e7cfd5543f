-- Name and metadata say nothing about the runtime, so the generation stays.
UPDATE sandglass.sandboxes SET name = CASE WHEN $3 THEN $4 ELSE name END, metadata = coalesce($5, metadata)
WHERE tenant_id = $1 AND id = $2
RETURNING *

SELECT v.name, v.digest, v.size_bytes, v.created_at
FROM sandglass.templates t JOIN sandglass.template_versions v ON v.name = t.name AND v.digest = t.current_digest
WHERE ($1::text IS NULL OR t.name > $1)
ORDER BY t.name LIMIT $2

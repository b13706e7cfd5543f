-- A digest names a version; without one it is the current one.
SELECT v.name, v.digest, v.size_bytes, v.created_at
FROM sandglass.templates t JOIN sandglass.template_versions v ON v.name = t.name AND v.digest = coalesce($2, t.current_digest)
WHERE t.name = $1

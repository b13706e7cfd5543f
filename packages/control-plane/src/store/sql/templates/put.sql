WITH template AS (
  INSERT INTO sandglass.templates (name, current_digest) VALUES ($2, $3)
  ON CONFLICT (name) DO UPDATE SET current_digest = excluded.current_digest WHERE templates.current_digest <> excluded.current_digest
)
INSERT INTO sandglass.template_versions (id, name, digest, size_bytes, packages, created_at)
VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (name, digest) DO NOTHING
RETURNING id

-- No tenant: an operator, who sees all.
SELECT * FROM sandglass.api_keys WHERE id = $1 AND ($2::text IS NULL OR tenant_id = $2)

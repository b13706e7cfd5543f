-- Never shortens.
UPDATE sandglass.sandboxes SET expires_at = greatest(expires_at, clock_timestamp() + make_interval(secs => $3::integer))
WHERE tenant_id = $1 AND id = $2
RETURNING *

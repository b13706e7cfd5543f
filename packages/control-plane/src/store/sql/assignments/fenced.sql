SELECT a.id, a.sandbox_id FROM sandglass.assignments a JOIN sandglass.host_leases l ON l.host_id = a.host_id
WHERE a.released_at IS NULL AND a.epoch < l.epoch AND ($1::text IS NULL OR a.host_id = $1)
ORDER BY a.created_at LIMIT $2

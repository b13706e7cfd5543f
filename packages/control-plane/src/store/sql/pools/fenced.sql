SELECT DISTINCT p.host_id FROM sandglass.pools p JOIN sandglass.host_leases l ON l.host_id = p.host_id
WHERE p.epoch < l.epoch AND ($1::text IS NULL OR p.host_id = $1)

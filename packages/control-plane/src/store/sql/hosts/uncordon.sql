-- Also the end of a drain: whoever retires for it looks at this row (lock-drain.sql; guard: drain.live).
UPDATE sandglass.host_capacity SET cordoned = false, drain_started_at = NULL, drain_deadline_at = NULL WHERE host_id = $1 AND cordoned RETURNING host_id

-- What a host holds of epochs that are over is used until their end and no longer. Behind the statement that ended the epoch, which locked the lease: what was
-- reported ready before is seen here, and nothing is any more. The assignments are released later, one by one.
UPDATE sandglass.usage_intervals u SET closed_at = greatest(u.opened_at, clock_timestamp())
FROM sandglass.assignments a JOIN sandglass.host_leases l ON l.host_id = a.host_id
WHERE a.host_id = $1 AND a.released_at IS NULL AND a.epoch < l.epoch
  AND u.sandbox_id = a.sandbox_id AND u.generation = a.generation AND u.closed_at IS NULL

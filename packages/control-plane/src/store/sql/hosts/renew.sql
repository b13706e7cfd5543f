-- guard: renew.epoch; answered after the commit (renew.durable)
UPDATE sandglass.host_leases SET seq = seq + 1, renewed_at = clock_timestamp()
WHERE host_id = $1 AND epoch = $2 AND holder = $3
RETURNING epoch, seq

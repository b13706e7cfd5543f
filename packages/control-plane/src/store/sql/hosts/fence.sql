-- guard: fence.cas: the host has not renewed, registered or been fenced since the observer saw it. `fenced_at` is only shown.
UPDATE sandglass.host_leases SET epoch = epoch + 1, holder = NULL, fenced_epoch = epoch, fenced_at = clock_timestamp()
WHERE host_id = $1 AND epoch = $2 AND seq = $3 AND holder IS NOT NULL
RETURNING epoch

-- A pool that never was: of the host's present epoch, with nothing in it.
INSERT INTO sandglass.pools (host_id, key, epoch, spec, memory_mb, disk_gb)
SELECT l.host_id, $2, l.epoch, $3, $4, $5 FROM sandglass.host_leases l WHERE l.host_id = $1
ON CONFLICT (host_id, key) DO NOTHING

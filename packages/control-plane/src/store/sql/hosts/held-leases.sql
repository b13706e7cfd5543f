-- No time of the database's clock is read: it may be stepped (guard: fence.clock).
SELECT host_id, epoch, seq FROM sandglass.host_leases WHERE holder IS NOT NULL

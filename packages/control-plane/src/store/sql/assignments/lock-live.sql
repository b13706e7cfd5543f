-- The assignment row is the lock of a runtime.
SELECT id, generation, host_id, epoch, vcpu_milli, memory_mb, disk_gb, pool_version
FROM sandglass.assignments WHERE sandbox_id = $1 AND released_at IS NULL FOR UPDATE

SELECT host_id, key, spec, epoch, memory_mb, disk_gb, target, held, version FROM sandglass.pools WHERE held > 0 OR $1 ORDER BY host_id, key

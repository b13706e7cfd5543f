SELECT epoch, seq, holder IS NOT NULL AS held FROM sandglass.host_leases WHERE host_id = $1

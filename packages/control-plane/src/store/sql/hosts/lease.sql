SELECT epoch, seq FROM sandglass.host_leases WHERE host_id = $1

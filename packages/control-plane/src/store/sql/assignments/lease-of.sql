-- guard: ready.epoch, rf.epoch (a guard on another row locks that row)
SELECT epoch, fenced_epoch FROM sandglass.host_leases WHERE host_id = $1 FOR SHARE

-- Nobody holds it, and its epoch is over: renewals, watches and reports of the removed host are refused, and what its pools held is released. It comes back by
-- joining anew (its identity is revoked with this) and registering. Waits for placements that are under way, which hold the row for their epoch; guard: remove.empty is what is asked behind it.
UPDATE sandglass.host_leases SET holder = NULL, epoch = epoch + 1 WHERE host_id = $1

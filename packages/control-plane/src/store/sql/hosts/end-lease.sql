-- Nobody holds it, and its epoch is over: renewals, watches and reports of the removed host are refused, it can only register anew, and what its pools held is
-- released. Waits for placements that are under way, which hold the row for their epoch; guard: remove.empty is what is asked behind it.
UPDATE sandglass.host_leases SET holder = NULL, epoch = epoch + 1 WHERE host_id = $1

-- Nobody holds it: renewals and watches of the removed host are refused. The epoch stays, from which the host may register anew. Waits for placements that
-- are under way, which hold the row for their epoch; guard: remove.empty is what is asked behind it.
UPDATE sandglass.host_leases SET holder = NULL WHERE host_id = $1

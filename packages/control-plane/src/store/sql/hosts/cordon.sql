-- Whoever reserves looks at this row in the statement that reserves (reserve.sql; guards: place.cap, claim.cordon): what was first is committed before this
-- one has the row, and behind its commit nothing is placed or claimed here.
UPDATE sandglass.host_capacity SET cordoned = true WHERE host_id = $1 AND NOT cordoned RETURNING host_id

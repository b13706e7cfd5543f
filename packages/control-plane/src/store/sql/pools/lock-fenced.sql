-- A statement of its own before fence.sql, which then sees what changes that were under way have made of pools and of what is reserved for them. Waiting for
-- them itself, it would take from what was reserved before; and what RETURNING OLD tells is then the row of before as well, where the table has a BEFORE
-- trigger (Postgres 18.4): a unit would stay reserved for ever.
SELECT p.key FROM sandglass.host_leases l JOIN sandglass.pools p ON p.host_id = l.host_id AND p.epoch < l.epoch
WHERE l.host_id = $1
FOR SHARE OF l FOR UPDATE OF p

-- Cordons too. A repetition leaves the beginning alone, and the deadline only comes nearer, so that a request that is sent again gives no more time. $2: in
-- how many seconds the deadline is; null: a drain that begins has $3, one that is under way keeps its own.
UPDATE sandglass.host_capacity SET
  cordoned = true,
  drain_started_at = coalesce(drain_started_at, clock_timestamp()),
  drain_deadline_at = least(drain_deadline_at, clock_timestamp() + make_interval(secs => coalesce($2::integer, CASE WHEN drain_started_at IS NULL THEN $3::integer END)))
WHERE host_id = $1
RETURNING OLD.drain_deadline_at IS DISTINCT FROM NEW.drain_deadline_at AS changed

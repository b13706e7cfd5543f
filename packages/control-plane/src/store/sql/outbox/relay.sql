-- Takes rows and notifies in one statement: a relay that dies in between has done neither. SKIP LOCKED lets several relays share the work.
-- Nobody waits for the disk: what a crash brings back is notified once more.
WITH taken AS (
  DELETE FROM sandglass.outbox
  WHERE id IN (SELECT id FROM sandglass.outbox ORDER BY id LIMIT $1 FOR UPDATE SKIP LOCKED)
  RETURNING origin, topic, key
), distinct_wakes AS (
  SELECT DISTINCT origin, topic, key FROM taken
), sent AS (
  SELECT pg_notify('sandglass_wake', json_build_object('origin', origin, 'topic', topic, 'key', key)::text) FROM distinct_wakes
)
SELECT (SELECT count(*) FROM taken) AS taken, (SELECT count(*) FROM sent) AS sent, set_config('synchronous_commit', 'off', true) AS waits_for_disk

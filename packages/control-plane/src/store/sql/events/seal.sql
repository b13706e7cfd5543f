-- Gives positions to what is committed and no longer behind an open transaction. guard: seal.horizon
-- An event that became visible late is still unsealed, so it gets a later position: nothing is ever given one that a reader has passed. The horizon
-- is for the order: an event waits for the transactions that began before its own, but not longer than $2 ms, lest one that hangs stops the feed.
WITH waiting AS (
  SELECT id, tenant_id, appended, xid < pg_snapshot_xmin(pg_current_snapshot()) OR at < clock_timestamp() - make_interval(secs => $2 / 1000.0) AS due
  FROM sandglass.events
  WHERE position IS NULL
  ORDER BY appended
  LIMIT $1
), counted AS (
  SELECT id, tenant_id, row_number() OVER (PARTITION BY tenant_id ORDER BY appended) AS nth FROM waiting WHERE due
), feeds AS (
  INSERT INTO sandglass.event_feeds AS feed (tenant_id, head)
  SELECT tenant_id, max(nth) FROM counted GROUP BY tenant_id
  ON CONFLICT (tenant_id) DO UPDATE SET head = feed.head + excluded.head
  RETURNING tenant_id, coalesce(old.head, 0) AS sealed_before
), sealed AS (
  UPDATE sandglass.events AS event
  SET position = feeds.sealed_before + counted.nth
  FROM counted JOIN feeds USING (tenant_id)
  WHERE event.id = counted.id AND event.position IS NULL
  RETURNING 1
)
SELECT (SELECT count(*) FROM sealed) AS sealed, (SELECT count(*) FROM waiting WHERE NOT due) AS held

-- Only from the front of each feed, so that what is left has no hole: older than $1 seconds, or more than $2 behind the head.
DELETE FROM sandglass.events
WHERE id IN (
  SELECT oldest.id
  FROM sandglass.event_feeds feed CROSS JOIN LATERAL (
    SELECT id, bool_and(at < clock_timestamp() - make_interval(secs => $1) OR position <= feed.head - $2) OVER (ORDER BY position) AS gone
    FROM (SELECT id, at, position FROM sandglass.events WHERE tenant_id = feed.tenant_id AND position IS NOT NULL ORDER BY position LIMIT $3) front
  ) oldest
  WHERE oldest.gone
)
RETURNING 1 AS deleted

-- What runs or starts on hosts that are drained, as far as it is not ordered to end yet: what is due first comes first, and what moves at once before all that
-- may finish (domain/host/drain.ts), however much that is. $1: how many milliseconds before the deadline what still runs is ended.
SELECT c.host_id, a.sandbox_id, a.generation, s.observed, s.restart_policy,
  greatest(-2147483648, least(extract(epoch FROM c.drain_deadline_at - clock_timestamp()) * 1000 - $1::integer, 2147483647))::integer AS ends_in_ms
FROM sandglass.host_capacity c
JOIN sandglass.assignments a ON a.host_id = c.host_id AND a.released_at IS NULL
JOIN sandglass.sandboxes s ON s.id = a.sandbox_id AND s.generation = a.generation
WHERE c.drain_started_at IS NOT NULL AND s.observed IN ('assigned', 'starting', 'ready')
ORDER BY s.observed = 'ready' AND s.restart_policy = 'never', c.drain_deadline_at, a.created_at
LIMIT $2

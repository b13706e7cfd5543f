-- Starts that take too long. Only retires them: what a host has not proved to be over is never released by time.
-- A host does a few starts at a time, in the order in which they were placed, so the time of one begins when it is placed or when one placed before it has
-- come to an end, ready or not: whoever stands far back in the line of a burst is not late. What was placed long before has been decided.
SELECT s.id AS sandbox_id, a.generation
FROM sandglass.assignments a JOIN sandglass.sandboxes s ON s.id = a.sandbox_id
WHERE a.released_at IS NULL AND a.generation = s.generation AND s.observed IN ('assigned', 'starting')
  AND a.created_at <= clock_timestamp() - make_interval(secs => $1::integer / 1000.0)
  AND NOT EXISTS (
    SELECT FROM sandglass.assignments e
    LEFT JOIN sandglass.usage_intervals u ON u.sandbox_id = e.sandbox_id AND u.generation = e.generation
    WHERE e.host_id = a.host_id AND e.created_at < a.created_at AND e.created_at > a.created_at - interval '1 h'
      AND coalesce(u.opened_at, e.released_at) > clock_timestamp() - make_interval(secs => $1::integer / 1000.0)
  )
ORDER BY a.created_at LIMIT $2

-- From placement to ready, of the newest thousand creates of the last ten minutes. By the index of demand: history is not read.
SELECT count(*) AS samples, percentile_cont(0.5) WITHIN GROUP (ORDER BY extract(epoch FROM s.ready_at - a.created_at))::float8 AS median_seconds
FROM (
  SELECT id, ready_at FROM sandglass.sandboxes WHERE created_at > clock_timestamp() - interval '10 min' ORDER BY created_at DESC LIMIT 1000
) s
CROSS JOIN LATERAL (
  SELECT a.created_at FROM sandglass.assignments a WHERE a.sandbox_id = s.id AND a.created_at <= s.ready_at ORDER BY a.generation DESC LIMIT 1
) a

-- What is wanted running elsewhere while the host of its earlier run has not proved that run's end: it says whom it waits for, also when that host is lost.
UPDATE sandglass.sandboxes SET unschedulable_reason = told.reason
FROM (
  SELECT s.id, why.reason
  FROM sandglass.sandboxes s
  JOIN sandglass.assignments a ON a.sandbox_id = s.id AND a.released_at IS NULL
  JOIN sandglass.host_leases l ON l.host_id = a.host_id
  CROSS JOIN LATERAL (
    SELECT 'awaiting_end: host ' || a.host_id || ' has not proved the end of its earlier run' || CASE
      WHEN l.renewed_at IS NULL OR l.renewed_at < clock_timestamp() - make_interval(secs => $1::integer / 1000.0) THEN ', and has not been heard of for a lease'
      ELSE ''
    END AS reason
  ) why
  WHERE s.observed = 'pending' AND s.desired = 'running' AND s.unschedulable_reason IS DISTINCT FROM why.reason
  FOR NO KEY UPDATE OF s SKIP LOCKED
) told
WHERE sandboxes.id = told.id

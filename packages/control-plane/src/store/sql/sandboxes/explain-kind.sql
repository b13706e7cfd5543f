-- All that wait and are of a kind which found no room, but those ($3) that were told one by one. What another scheduler is placing is left to it.
UPDATE sandglass.sandboxes SET unschedulable_reason = $2
WHERE id IN (
  SELECT s.id FROM sandglass.sandboxes s
  WHERE s.observed = 'pending' AND s.desired = 'running' AND sandglass.placement_kind(s) = $1
    AND (s.retry_at IS NULL OR s.retry_at <= clock_timestamp()) AND s.id <> ALL ($3::text[]) AND s.unschedulable_reason IS DISTINCT FROM $2
    AND NOT EXISTS (SELECT FROM sandglass.assignments a WHERE a.sandbox_id = s.id AND a.released_at IS NULL)
  FOR NO KEY UPDATE SKIP LOCKED
)

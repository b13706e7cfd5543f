-- The only statement that changes what a sandbox is wanted to be or seen as. guard: place.gen, ready.gen (generation and states in the same statement)
WITH moved AS (
  UPDATE sandglass.sandboxes SET
    observed = $4,
    desired = $5,
    generation = generation + $6,
    status_reason = CASE WHEN $4 IN ('ready') THEN NULL ELSE coalesce($7, status_reason) END,
    unschedulable_reason = CASE WHEN $4 = 'pending' THEN unschedulable_reason END,
    host_id = coalesce($8, host_id),
    start_attempts = start_attempts + CASE WHEN $4 = 'assigned' THEN 1 ELSE 0 END,
    retry_at = CASE WHEN $9::integer IS NULL THEN NULL ELSE clock_timestamp() + make_interval(secs => $9::integer / 1000.0) END,
    evidence = coalesce($10, evidence),
    start_timings_ms = coalesce($11, start_timings_ms),
    start_path = coalesce($13, start_path),
    operation_id = coalesce($12, operation_id),
    ready_at = CASE WHEN $4 = 'ready' THEN clock_timestamp() ELSE ready_at END,
    ended_at = CASE WHEN $4 IN ('failed', 'terminated') THEN coalesce(ended_at, clock_timestamp()) ELSE ended_at END
  WHERE id = $1 AND generation = $2 AND observed = ANY ($3::text[])
  RETURNING *
), noted AS (
  INSERT INTO sandglass.events (tenant_id, type, sandbox_id, generation, reason)
  SELECT tenant_id, 'sandbox.' || observed, id, generation, status_reason FROM moved
)
SELECT * FROM moved

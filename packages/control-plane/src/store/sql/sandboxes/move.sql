-- The only statement that changes what a sandbox is wanted to be or seen as. guard: place.gen, ready.gen (generation and states in the same statement)
-- $14 is given when a run begins (start, restart): the count of restarts in a row. What was proved, counted and said of the run before is not this one's.
WITH moved AS (
  UPDATE sandglass.sandboxes SET
    observed = $4,
    desired = $5,
    generation = generation + $6,
    status_reason = CASE WHEN $4 IN ('ready') THEN NULL WHEN $14::integer IS NOT NULL THEN $7 ELSE coalesce($7, status_reason) END,
    unschedulable_reason = CASE WHEN $4 = 'pending' AND $14::integer IS NULL THEN unschedulable_reason ELSE $18 END,
    host_id = coalesce($8, host_id),
    start_attempts = CASE WHEN $14::integer IS NOT NULL THEN 0 WHEN $4 = 'assigned' THEN start_attempts + 1 ELSE coalesce($17::integer, start_attempts) END,
    restarts = coalesce($14, restarts),
    wanted_since = CASE WHEN $14::integer IS NULL THEN wanted_since ELSE clock_timestamp() + make_interval(secs => coalesce($9::integer, 0) / 1000.0) END,
    retry_at = CASE WHEN $9::integer IS NULL THEN NULL ELSE clock_timestamp() + make_interval(secs => $9::integer / 1000.0) END,
    evidence = CASE WHEN $14::integer IS NULL THEN coalesce($10, evidence) END,
    start_timings_ms = CASE WHEN $14::integer IS NULL THEN coalesce($11, start_timings_ms) END,
    start_path = CASE WHEN $14::integer IS NULL THEN coalesce($13, start_path) END,
    traceparent = CASE WHEN $14::integer IS NULL THEN traceparent ELSE $16 END,
    operation_id = coalesce($12, operation_id),
    idle_at = CASE WHEN $4 = 'ready' THEN clock_timestamp() + make_interval(secs => idle_timeout_seconds) END,
    ready_at = CASE WHEN $4 = 'ready' THEN clock_timestamp() WHEN $14::integer IS NULL THEN ready_at END,
    ended_at = CASE
      WHEN $5 = 'running' THEN NULL
      WHEN $4 IN ('failed', 'stopped', 'terminated') THEN coalesce(ended_at, clock_timestamp())
      ELSE ended_at
    END,
    -- A stopped one is kept for the life of a record, $15 seconds; started again it has what is left of its own life, and no less than it asked for.
    life_until = CASE WHEN $5 = 'running' THEN NULL WHEN $15::integer IS NULL THEN life_until ELSE expires_at END,
    expires_at = CASE
      WHEN $15::integer IS NOT NULL THEN greatest(expires_at, clock_timestamp() + make_interval(secs => $15::integer))
      WHEN desired = 'stopped' AND $5 = 'running' THEN greatest(coalesce(life_until, expires_at), clock_timestamp() + make_interval(secs => ttl_seconds))
      ELSE expires_at
    END
  WHERE id = $1 AND generation = $2 AND observed = ANY ($3::text[])
  RETURNING *
), noted AS (
  INSERT INTO sandglass.events (tenant_id, type, sandbox_id, generation, reason)
  SELECT tenant_id, 'sandbox.' || observed, id, generation, status_reason FROM moved
)
SELECT * FROM moved

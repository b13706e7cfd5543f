-- A new sandbox with what belongs to it from the first moment: its create operation, its first event, and who asked for it.
WITH sandbox AS (
  INSERT INTO sandglass.sandboxes (
    id, tenant_id, name, region, desired, observed, template_name, template_digest, vcpu_milli, memory_mb, disk_gb, driver, network_mode, env, metadata,
    ttl_seconds, quota_held, operation_id, expires_at, pool_key, traceparent, restart_policy, idle_timeout_seconds,
    on_timeout
  )
  VALUES ($1, $2, $3, $4, 'running', 'pending', $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, true, $15, clock_timestamp() + make_interval(secs => $14::integer), $16, $17, $21, $22, $23)
), operation AS (
  INSERT INTO sandglass.operations (id, tenant_id, kind, status, sandbox_id) VALUES ($15, $2, 'sandbox.create', 'pending', $1)
), event AS (
  INSERT INTO sandglass.events (tenant_id, type, sandbox_id, generation) VALUES ($2, 'sandbox.pending', $1, 0)
)
INSERT INTO sandglass.audit_log (tenant_id, actor_type, actor_id, action, subject, request_id, detail)
VALUES ($2, $18, $19, 'sandbox.create', $1, $20, '{}')

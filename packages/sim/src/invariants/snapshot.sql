-- Everything that the invariants speak of, as one value. Asked between transactions, so that all of it is committed.
SELECT json_build_object(
  'sandboxes', (SELECT coalesce(json_agg(json_build_object(
    'id', id, 'desired', desired, 'observed', observed, 'generation', generation, 'quota_held', quota_held, 'vcpu_milli', vcpu_milli, 'memory_mb', memory_mb,
    'disk_gb', disk_gb, 'intent', metadata->>'intent', 'operation_id', operation_id, 'reason', status_reason, 'waits', unschedulable_reason,
    'expired', expires_at < clock_timestamp()) ORDER BY created_at, id), '[]') FROM sandglass.sandboxes),
  'assignments', (SELECT coalesce(json_agg(json_build_object(
    'id', id, 'sandbox', sandbox_id, 'generation', generation, 'host', host_id, 'epoch', epoch, 'vcpu_milli', vcpu_milli, 'memory_mb', memory_mb, 'disk_gb', disk_gb,
    'released_by', released_by, 'released_ms', extract(epoch FROM released_at) * 1000) ORDER BY created_at, id), '[]') FROM sandglass.assignments),
  'hosts', (SELECT coalesce(json_agg(json_build_object(
    'id', h.id, 'name', h.name, 'epoch', l.epoch, 'seq', l.seq, 'held', l.holder IS NOT NULL, 'cordoned', c.cordoned, 'removed', h.removed_at IS NOT NULL,
    'vcpu_milli_capacity', c.vcpu_milli_capacity, 'vcpu_milli_reserved', c.vcpu_milli_reserved,
    'memory_mb_capacity', c.memory_mb_capacity, 'memory_mb_reserved', c.memory_mb_reserved,
    'disk_gb_capacity', c.disk_gb_capacity, 'disk_gb_reserved', c.disk_gb_reserved) ORDER BY h.id), '[]')
    FROM sandglass.hosts h JOIN sandglass.host_leases l ON l.host_id = h.id JOIN sandglass.host_capacity c ON c.host_id = h.id),
  'pools', (SELECT coalesce(json_agg(json_build_object(
    'host', host_id, 'key', key, 'epoch', epoch, 'target', target, 'held', held, 'version', version, 'acked', acked_version, 'memory_mb', memory_mb, 'disk_gb', disk_gb)
    ORDER BY host_id, key), '[]') FROM sandglass.pools),
  'quotas', (SELECT coalesce(json_agg(json_build_object(
    'running', running_sandboxes_used, 'vcpu_milli', vcpu_milli_used, 'memory_mb', memory_mb_used, 'disk_gb', disk_gb_used, 'kept', kept_sandboxes_used,
    'running_limit', running_sandboxes_limit)), '[]') FROM sandglass.quotas),
  'usage', (SELECT coalesce(json_agg(json_build_object(
    'sandbox', sandbox_id, 'generation', generation, 'opened_ms', extract(epoch FROM opened_at) * 1000, 'closed_ms', extract(epoch FROM closed_at) * 1000)
    ORDER BY sandbox_id, generation), '[]') FROM sandglass.usage_intervals),
  'operations', (SELECT coalesce(json_agg(json_build_object('id', id, 'kind', kind, 'status', status, 'sandbox', sandbox_id) ORDER BY id), '[]') FROM sandglass.operations),
  'audit', (SELECT coalesce(json_object_agg(what, times), '{}') FROM (
    SELECT action || ' ' || subject AS what, count(*) AS times FROM sandglass.audit_log GROUP BY 1 ORDER BY 1) told),
  'events', (SELECT coalesce(json_object_agg(sandbox_id, times), '{}') FROM (
    SELECT sandbox_id, count(*) AS times FROM sandglass.events GROUP BY 1 ORDER BY 1) told),
  'keys', (SELECT coalesce(json_agg(json_build_object('route', route, 'subject', subject_id) ORDER BY route, subject_id), '[]') FROM sandglass.idempotency_keys),
  'outbox', (SELECT count(*) FROM sandglass.outbox),
  'unsealed', (SELECT count(*) FROM sandglass.events WHERE position IS NULL),
  'feed_holes', (SELECT count(*) FROM (
    SELECT position - row_number() OVER (PARTITION BY tenant_id ORDER BY position) AS ahead FROM sandglass.events WHERE position IS NOT NULL) fed WHERE ahead <> 0)
) AS snapshot

-- One row for each host, sandbox and generation, however often it is reported and by however many requests at once (index audit_log_late_reports).
INSERT INTO sandglass.audit_log (tenant_id, actor_type, actor_id, action, subject, detail)
SELECT NULL, 'host', $1, 'report.late', late.sandbox_id, jsonb_build_object('type', late.type, 'generation', late.generation, 'epoch', $5::bigint, 'code', $6::text)
FROM unnest($2::text[], $3::text[], $4::bigint[]) AS late (sandbox_id, type, generation)
ON CONFLICT DO NOTHING

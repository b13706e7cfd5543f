-- Placement by several schedulers at once, in turns among tenants.

-- The operator's: a tenant of weight two gets twice the room of one of weight one before it is the other one's turn.
ALTER TABLE quotas ADD COLUMN fair_weight integer NOT NULL DEFAULT 1 CHECK (fair_weight BETWEEN 1 AND 1000);

-- What is alike for placement: where one of a kind finds no room, no other of it does.
CREATE FUNCTION placement_kind(s sandboxes) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT concat_ws(' ', s.region, s.driver, s.template_digest, s.vcpu_milli, s.memory_mb, s.disk_gb, s.pool_key, CASE WHEN s.restarts > 0 THEN 'again' END)
$$;

-- Each tenant's line, in the order of waiting.
DROP INDEX sandboxes_pending;
CREATE INDEX sandboxes_pending ON sandboxes (tenant_id, coalesce(wanted_since, created_at)) WHERE observed = 'pending' AND desired = 'running';
-- Where a tenant's sandboxes are, for their spread over hosts and zones.
CREATE INDEX assignments_live_by_tenant ON assignments (tenant_id, host_id) WHERE released_at IS NULL;
-- What is not over, by where it is: how many there are of each, and which are starting.
CREATE INDEX sandboxes_unfinished ON sandboxes (observed) WHERE observed <> 'terminated';

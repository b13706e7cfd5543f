-- Records of sandboxes that are stopped or failed, undeleted and without a quota of their own: what a tenant keeps for a start, counted while it does.
ALTER TABLE quotas
  ADD COLUMN kept_sandboxes_limit integer NOT NULL DEFAULT 10000,
  ADD COLUMN kept_sandboxes_used integer NOT NULL DEFAULT 0 CHECK (kept_sandboxes_used >= 0);
ALTER TABLE quotas ALTER COLUMN kept_sandboxes_limit DROP DEFAULT;

UPDATE quotas q SET kept_sandboxes_used = (SELECT count(*) FROM sandboxes s WHERE s.tenant_id = q.tenant_id AND s.desired = 'stopped' AND NOT s.quota_held);

-- Whose key it is and where its sandbox runs, from one read; no row: the key opens nothing (as in api-keys/authenticate.sql).
-- guard: route.lease: valid no longer than the host's lease has left at this read, nor than a whole one if this database's clock was set back
SELECT k.id AS api_key_id, k.tenant_id, k.role, s.observed, s.status_reason, s.generation, a.host_id, a.epoch, l.seq, h.data_plane_url,
  CASE WHEN l.renewed_at IS NOT NULL THEN
    greatest(0, least($3::integer, floor($3::integer - extract(epoch FROM clock_timestamp() - l.renewed_at) * 1000)))::integer
  END AS valid_for_ms,
  -- How much of its idle time was used up when this was asked.
  (s.idle_timeout_seconds - extract(epoch FROM s.idle_at - clock_timestamp()))::float8 AS idle_seconds, s.idle_timeout_seconds
FROM sandglass.api_keys k
LEFT JOIN sandglass.sandboxes s ON s.tenant_id = k.tenant_id AND s.id = $2
LEFT JOIN sandglass.assignments a ON a.sandbox_id = s.id AND a.released_at IS NULL AND a.generation = s.generation AND s.observed = 'ready'
LEFT JOIN sandglass.host_leases l ON l.host_id = a.host_id AND l.epoch = a.epoch
LEFT JOIN sandglass.hosts h ON h.id = l.host_id
WHERE k.sha256 = $1 AND k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > clock_timestamp())

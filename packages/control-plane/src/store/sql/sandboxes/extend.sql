-- Never shortens. Of a stopped one it is the life of its record and the one that it has when it is started again (move.sql).
UPDATE sandglass.sandboxes SET
  expires_at = greatest(expires_at, clock_timestamp() + make_interval(secs => $3::integer)),
  life_until = CASE WHEN life_until IS NOT NULL THEN greatest(life_until, clock_timestamp() + make_interval(secs => $3::integer)) END
WHERE tenant_id = $1 AND id = $2
RETURNING *

-- Of life, or of nobody using it ($1: the latter counts now).
SELECT least(extract(epoch FROM least(
  (SELECT min(expires_at) FROM sandglass.sandboxes WHERE desired <> 'deleted'),
  CASE WHEN $1::boolean THEN (SELECT min(idle_at) FROM sandglass.sandboxes WHERE idle_at IS NOT NULL) END
) - clock_timestamp()) * 1000, 2147483647)::integer AS due_in_ms

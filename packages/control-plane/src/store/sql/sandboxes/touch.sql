-- Somebody uses it. Never brings the end nearer; of an older run it says nothing.
UPDATE sandglass.sandboxes SET idle_at = clock_timestamp() + make_interval(secs => idle_timeout_seconds)
WHERE id = $1 AND generation = $2 AND idle_at < clock_timestamp() + make_interval(secs => idle_timeout_seconds)

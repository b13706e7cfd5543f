-- guard: remove.empty
SELECT count(*) AS live, count(*) FILTER (WHERE s.generation = a.generation) AS wanted
FROM sandglass.assignments a JOIN sandglass.sandboxes s ON s.id = a.sandbox_id
WHERE a.host_id = $1 AND a.released_at IS NULL

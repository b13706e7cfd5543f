-- Asked under the row's lock. One that was ready for $2 seconds begins a new row.
SELECT CASE WHEN ready_at <= clock_timestamp() - make_interval(secs => $2::integer) THEN 0 ELSE restarts END AS restarts
FROM sandglass.sandboxes WHERE id = $1

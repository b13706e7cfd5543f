-- guard: drain.live: the host is still being drained, until the end of the transaction (a guard on another row locks that row).
SELECT greatest(-2147483648, least(extract(epoch FROM drain_deadline_at - clock_timestamp()) * 1000 - $2::integer, 2147483647))::integer AS ends_in_ms
FROM sandglass.host_capacity WHERE host_id = $1 AND drain_started_at IS NOT NULL
FOR SHARE

-- Creates of the last $1 seconds by what a member of theirs would be; `recent` counts those of the last $2.
SELECT pool_key, driver, template_name, template_digest, vcpu_milli, memory_mb, disk_gb, network_mode, count(*) AS arrivals,
  count(*) FILTER (WHERE created_at > clock_timestamp() - make_interval(secs => $2::integer)) AS recent
FROM sandglass.sandboxes
WHERE created_at > clock_timestamp() - make_interval(secs => $1::integer) AND pool_key IS NOT NULL
GROUP BY pool_key, driver, template_name, template_digest, vcpu_milli, memory_mb, disk_gb, network_mode

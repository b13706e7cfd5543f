SELECT (extract(epoch FROM min(retry_at) - clock_timestamp()) * 1000)::integer AS due_in_ms
FROM sandglass.sandboxes WHERE observed = 'pending' AND desired = 'running' AND retry_at > clock_timestamp()

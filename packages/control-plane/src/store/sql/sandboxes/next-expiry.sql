SELECT least(extract(epoch FROM min(expires_at) - clock_timestamp()) * 1000, 2147483647)::integer AS due_in_ms
FROM sandglass.sandboxes WHERE desired <> 'deleted'

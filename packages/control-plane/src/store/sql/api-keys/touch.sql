UPDATE sandglass.api_keys SET last_used_at = clock_timestamp() WHERE id = ANY ($1::text[])

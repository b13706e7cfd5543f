UPDATE sandglass.join_tokens SET used_at = clock_timestamp(), used_by = $2, used_key = $3 WHERE id = $1

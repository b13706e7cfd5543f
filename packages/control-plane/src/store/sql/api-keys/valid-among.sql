SELECT id FROM sandglass.api_keys WHERE id = ANY ($1::text[]) AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > clock_timestamp())

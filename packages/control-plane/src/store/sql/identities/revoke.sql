INSERT INTO sandglass.identities (role, name, revoked_at) VALUES ($1, $2, clock_timestamp())
ON CONFLICT (role, name) DO UPDATE SET revoked_at = coalesce(identities.revoked_at, clock_timestamp())

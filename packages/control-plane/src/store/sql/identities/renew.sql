-- guard: renew.identity: only while the key is the one that joined last, and not revoked. Without a row it is noted now.
INSERT INTO sandglass.identities (role, name, key_fingerprint, serial, expires_at) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (role, name) DO UPDATE SET renewed_at = clock_timestamp(), serial = excluded.serial, expires_at = excluded.expires_at
WHERE identities.key_fingerprint = excluded.key_fingerprint AND identities.revoked_at IS NULL
RETURNING true AS renewed

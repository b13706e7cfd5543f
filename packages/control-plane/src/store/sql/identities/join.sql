-- guard: join.key: another join may have made the row since it was looked for and not found; no lock is on what is not there.
INSERT INTO sandglass.identities (role, name, key_fingerprint, labels, serial, expires_at) VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (role, name) DO UPDATE SET
  key_fingerprint = excluded.key_fingerprint, labels = excluded.labels, serial = excluded.serial, expires_at = excluded.expires_at,
  joined_at = clock_timestamp(), renewed_at = NULL, revoked_at = NULL
WHERE identities.role <> 'host' OR identities.revoked_at IS NOT NULL OR identities.key_fingerprint = excluded.key_fingerprint
RETURNING true AS written

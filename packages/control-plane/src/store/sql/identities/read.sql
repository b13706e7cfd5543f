SELECT key_fingerprint, revoked_at IS NOT NULL AS is_revoked FROM sandglass.identities WHERE role = $1 AND name = $2

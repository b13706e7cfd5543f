-- guard: register.identity: a removal that is under way is over, or waits for this registration.
SELECT key_fingerprint, revoked_at IS NOT NULL AS is_revoked FROM sandglass.identities WHERE role = $1 AND name = $2 FOR SHARE

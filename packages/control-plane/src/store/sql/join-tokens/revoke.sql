-- One that is used or past its time stays what it is.
UPDATE sandglass.join_tokens SET revoked_at = coalesce(revoked_at, CASE WHEN used_at IS NULL THEN clock_timestamp() END) WHERE id = $1
RETURNING id, OLD.revoked_at IS NULL AND NEW.revoked_at IS NOT NULL AS changed

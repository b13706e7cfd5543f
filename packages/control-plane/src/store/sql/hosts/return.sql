-- A removed host registers anew.
UPDATE sandglass.hosts SET removed_at = NULL WHERE id = $1 AND removed_at IS NOT NULL RETURNING id

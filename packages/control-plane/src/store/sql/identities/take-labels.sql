-- What the token said of the host, once.
UPDATE sandglass.identities SET labels = '{}' WHERE role = 'host' AND name = $1 AND labels <> '{}' RETURNING OLD.labels AS labels

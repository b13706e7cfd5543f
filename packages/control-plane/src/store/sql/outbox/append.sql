INSERT INTO sandglass.outbox (origin, topic, key)
SELECT $1, topic, key FROM unnest($2::text[], $3::text[]) AS wake (topic, key)

-- What waits for the row in order to reserve finds it cordoned; so does the host when it registers anew.
WITH host AS (
  UPDATE sandglass.hosts SET removed_at = clock_timestamp(), labels = '{}' WHERE id = $1
)
UPDATE sandglass.host_capacity SET cordoned = true, drain_started_at = NULL, drain_deadline_at = NULL WHERE host_id = $1

-- What a host tells of itself. An offer below what is still reserved is raised to it: nothing more fits then, and the sums stay true. The host's row is locked
-- before its capacity, as operators do (lock-named.sql): the second update waits for what the first one returns.
WITH host AS (
  UPDATE sandglass.hosts SET name = $2, version = $3, drivers = $4, templates = $5, data_plane_url = $6 WHERE id = $1 RETURNING id
)
UPDATE sandglass.host_capacity c SET
  vcpu_milli_capacity = greatest($7, vcpu_milli_reserved),
  memory_mb_capacity = greatest($8, memory_mb_reserved),
  disk_gb_capacity = greatest($9, disk_gb_reserved)
FROM host WHERE c.host_id = host.id

-- The first row of a host that nobody has heard of; epoch 0 is the one that it expects.
WITH host AS (
  INSERT INTO sandglass.hosts (id, name, region, version, drivers, templates, data_plane_url) VALUES ($1, $2, $3, $4, '[]', '[]', '')
  ON CONFLICT (id) DO NOTHING RETURNING id
), lease AS (
  INSERT INTO sandglass.host_leases (host_id, epoch, seq) SELECT id, 0, 0 FROM host
)
INSERT INTO sandglass.host_capacity (host_id, vcpu_milli_capacity, memory_mb_capacity, disk_gb_capacity) SELECT id, 0, 0, 0 FROM host

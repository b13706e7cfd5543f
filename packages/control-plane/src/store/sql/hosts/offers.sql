-- `lost` is a view (no renewal for a lease) on this database's own clock; it keeps new work away and releases nothing.
SELECT h.id, h.name, h.region, h.labels ->> 'zone' AS zone, h.labels ->> 'class' AS class, h.drivers, h.templates, l.epoch,
  (l.holder IS NULL OR l.renewed_at IS NULL OR l.renewed_at < clock_timestamp() - make_interval(secs => $1::integer / 1000.0)) AS lost,
  c.vcpu_milli_capacity, c.vcpu_milli_reserved, c.memory_mb_capacity, c.memory_mb_reserved, c.disk_gb_capacity, c.disk_gb_reserved, c.cordoned
FROM sandglass.hosts h JOIN sandglass.host_leases l ON l.host_id = h.id JOIN sandglass.host_capacity c ON c.host_id = h.id
WHERE h.removed_at IS NULL
ORDER BY h.id

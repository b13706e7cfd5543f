-- Versions that the host has not acknowledged, of the epoch that it holds. guard: pool.epoch (position and epoch from one read)
SELECT p.key, p.spec, p.epoch, p.version, p.target
FROM sandglass.pools p JOIN sandglass.host_leases l ON l.host_id = p.host_id AND l.epoch = p.epoch
WHERE p.host_id = $1 AND p.acked_version < p.version

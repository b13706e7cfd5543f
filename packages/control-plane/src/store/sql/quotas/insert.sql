INSERT INTO sandglass.quotas (tenant_id, running_sandboxes_limit, vcpu_milli_limit, memory_mb_limit, disk_gb_limit, kept_sandboxes_limit)
VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (tenant_id) DO NOTHING

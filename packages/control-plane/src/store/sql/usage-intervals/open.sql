INSERT INTO sandglass.usage_intervals (sandbox_id, generation, tenant_id, vcpu_milli, memory_mb, disk_gb) VALUES ($1, $2, $3, $4, $5, $6)

INSERT INTO sandglass.events (tenant_id, type, sandbox_id, generation, reason) VALUES ($1, $2, $3, $4, $5)

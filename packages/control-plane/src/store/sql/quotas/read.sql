SELECT * FROM sandglass.quotas WHERE tenant_id = $1

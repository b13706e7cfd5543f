SELECT * FROM sandglass.operations WHERE tenant_id = $1 AND id = $2

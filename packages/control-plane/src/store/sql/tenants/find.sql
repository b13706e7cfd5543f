SELECT id, name FROM sandglass.tenants WHERE name = $1

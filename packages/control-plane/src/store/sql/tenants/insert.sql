INSERT INTO sandglass.tenants (id, name) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING

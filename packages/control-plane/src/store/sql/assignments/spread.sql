-- On which hosts these tenants have how many, by what is live.
SELECT tenant_id, host_id, count(*) AS live FROM sandglass.assignments WHERE released_at IS NULL AND tenant_id = ANY ($1::text[]) GROUP BY tenant_id, host_id

SELECT tenant_id, head FROM sandglass.event_feeds WHERE tenant_id = ANY ($1::text[])

SELECT id FROM sandglass.operations WHERE id = ANY ($1::text[]) AND status <> 'pending'

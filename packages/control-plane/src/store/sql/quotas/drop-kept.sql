-- A record that was kept is deleted.
UPDATE sandglass.quotas SET kept_sandboxes_used = kept_sandboxes_used - 1 WHERE tenant_id = $1

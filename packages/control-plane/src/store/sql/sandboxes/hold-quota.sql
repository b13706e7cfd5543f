-- The reverse of drop-quota.sql: whoever turns the mark takes the amounts.
UPDATE sandglass.sandboxes SET quota_held = true WHERE id = $1 AND NOT quota_held RETURNING id

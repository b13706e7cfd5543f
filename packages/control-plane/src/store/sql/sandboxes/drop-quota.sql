-- Once per sandbox: whoever turns the mark gives the amounts back.
UPDATE sandglass.sandboxes SET quota_held = false WHERE id = $1 AND quota_held RETURNING id

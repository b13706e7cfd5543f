-- For one who asks for what is on its way already and has no operation to wait for: nothing that is wanted changes.
UPDATE sandglass.sandboxes SET operation_id = $2 WHERE id = $1 RETURNING *

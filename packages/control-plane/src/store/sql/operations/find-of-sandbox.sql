SELECT * FROM sandglass.operations WHERE sandbox_id = $1 AND kind = $2

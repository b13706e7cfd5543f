-- Of what happens once to a sandbox; the condition that says so again is the index's.
SELECT * FROM sandglass.operations WHERE sandbox_id = $1 AND kind = $2 AND kind IN ('sandbox.create', 'sandbox.delete')

UPDATE sandglass.sandboxes SET unschedulable_reason = $3
WHERE id = $1 AND generation = $2 AND observed = 'pending' AND unschedulable_reason IS DISTINCT FROM $3

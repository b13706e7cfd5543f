-- guard: register.cas: from the expected epoch, or a repetition by the same boot that already got it. A repetition leaves the epoch alone.
UPDATE sandglass.host_leases SET
  epoch = $2 + 1, holder = $3, seq = seq + 1, renewed_at = clock_timestamp()
WHERE host_id = $1 AND (epoch = $2 OR (epoch = $2 + 1 AND holder = $3))
RETURNING epoch, seq

-- Asked under the row's lock: somebody may have used it meanwhile.
SELECT idle_at <= clock_timestamp() AS idle FROM sandglass.sandboxes WHERE id = $1

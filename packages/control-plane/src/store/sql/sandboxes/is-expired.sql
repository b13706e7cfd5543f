-- Asked under the row's lock: an extension may have come first.
SELECT expires_at <= clock_timestamp() AS expired FROM sandglass.sandboxes WHERE id = $1

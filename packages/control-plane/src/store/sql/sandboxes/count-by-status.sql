SELECT observed, count(*) AS sandboxes FROM sandglass.sandboxes WHERE observed <> 'terminated' GROUP BY observed

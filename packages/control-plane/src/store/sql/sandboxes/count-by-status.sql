SELECT observed, count(*) AS sandboxes FROM sandglass.sandboxes WHERE desired <> 'deleted' OR observed <> 'terminated' GROUP BY observed

-- How far a host has come with the starts that were placed before another one (assignments/overdue.sql), those that are over among them.
CREATE INDEX assignments_by_host ON assignments (host_id, created_at);

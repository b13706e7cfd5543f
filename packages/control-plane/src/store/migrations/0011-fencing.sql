-- Fencing: a host that renews nothing has its lease taken away.

-- Of the last fence: which epoch it ended, and when; the time is only shown. Null: never fenced. No value for rows of before, so that adding them touches none.
ALTER TABLE host_leases ADD COLUMN fenced_epoch bigint, ADD COLUMN fenced_at timestamptz;
-- What observers read every second. A renewal touches no column of it.
CREATE INDEX host_leases_held ON host_leases (host_id) WHERE holder IS NOT NULL;

-- A report that comes too late is audited once.
CREATE UNIQUE INDEX audit_log_late_reports ON audit_log (actor_id, subject, (detail ->> 'generation')) WHERE action = 'report.late';

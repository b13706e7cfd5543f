-- What operators say of hosts and do with them.
--
-- A drain stands in the row that every reservation updates, so that it begins and ends with the cordon: there is no drain of a host that takes work.
-- A removed host keeps its row, to which its history refers, and whose lease has no holder: it comes back by registering anew only.
ALTER TABLE hosts
  ADD COLUMN labels jsonb NOT NULL DEFAULT '{}' CHECK (jsonb_typeof(labels) = 'object'),
  ADD COLUMN removed_at timestamptz;

ALTER TABLE host_capacity
  ADD COLUMN drain_started_at timestamptz,
  ADD COLUMN drain_deadline_at timestamptz,
  ADD CONSTRAINT host_capacity_drain_whole CHECK (num_nulls(drain_started_at, drain_deadline_at) IN (0, 2)),
  ADD CONSTRAINT host_capacity_drain_cordons CHECK (drain_started_at IS NULL OR cordoned);
CREATE INDEX host_capacity_draining ON host_capacity (drain_deadline_at) WHERE drain_started_at IS NOT NULL;

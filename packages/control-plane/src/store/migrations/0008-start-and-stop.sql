-- Start, stop and restart. Columns without a value for rows of before, so that adding them touches none.

-- What becomes of it when its runtime ends without being told to, and how often in a row that has led to a restart.
ALTER TABLE sandboxes
  ADD COLUMN restart_policy text NOT NULL DEFAULT 'never' CHECK (restart_policy IN ('never', 'on_host_loss', 'always')),
  ADD COLUMN restarts integer NOT NULL DEFAULT 0 CHECK (restarts >= 0),
  -- Since when it is wanted running again; null: since its create.
  ADD COLUMN wanted_since timestamptz,
  -- The deadline of its running life, kept while a stopped one has that of its record; null while it is wanted running.
  ADD COLUMN life_until timestamptz;

ALTER TABLE operations DROP CONSTRAINT operations_kind_check;
ALTER TABLE operations ADD CONSTRAINT operations_kind_check
  CHECK (kind IN ('sandbox.create', 'sandbox.start', 'sandbox.stop', 'sandbox.delete'));
-- A sandbox is created and deleted once, and started and stopped as often as anybody likes. At most one operation of it is pending: the one that its row names.
DROP INDEX operations_one_of_a_kind;
CREATE UNIQUE INDEX operations_one_of_a_kind ON operations (sandbox_id, kind) WHERE kind IN ('sandbox.create', 'sandbox.delete');

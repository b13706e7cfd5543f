-- Warm pools. A row is one pool: of one host and one key (what is fixed when a member boots, as text in `spec`).
--
-- A unit is the memory and disk of one member, counted in the host's reserved amounts; its vCPU is reserved at the claim. `target` is how many members the
-- host may keep, `held` how many units are still reserved for them, and `version` counts every change of the target: what was shrunk away stays held
-- until the host acknowledges the version that says so. A row is never deleted: the host remembers versions of it.
CREATE TABLE pools (
  host_id text NOT NULL REFERENCES hosts,
  key text NOT NULL CHECK (key ~ '^[0-9a-f]{64}$'),
  epoch bigint NOT NULL,
  spec text NOT NULL,
  memory_mb integer NOT NULL CHECK (memory_mb > 0),
  disk_gb integer NOT NULL CHECK (disk_gb > 0),
  target integer NOT NULL DEFAULT 0 CHECK (target >= 0),
  held integer NOT NULL DEFAULT 0,
  version bigint NOT NULL DEFAULT 0,
  acked_version bigint NOT NULL DEFAULT 0,
  PRIMARY KEY (host_id, key),
  CHECK (held >= target),
  CHECK (acked_version <= version)
) WITH (fillfactor = 50);

CREATE FUNCTION pool_only_advances() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.version < OLD.version OR NEW.epoch < OLD.epoch THEN
    RAISE EXCEPTION 'pool % of host % would go back', OLD.key, OLD.host_id;
  END IF;
  RETURN NEW;
END
$$;
CREATE TRIGGER pools_only_advance BEFORE UPDATE ON pools FOR EACH ROW EXECUTE FUNCTION pool_only_advances();

-- The pool as the claim of its unit left it; null for an assignment that took none.
ALTER TABLE assignments ADD COLUMN pool_key text, ADD COLUMN pool_target integer;
ALTER TABLE assignments ADD CONSTRAINT assignments_pool_position CHECK (num_nulls(pool_key, pool_version, pool_target) IN (0, 3));

-- Whose members could become it, and which way it came up.
ALTER TABLE sandboxes ADD COLUMN pool_key text, ADD COLUMN start_path text CHECK (start_path IN ('claimed', 'cold'));
-- Demand: creates of the last minutes, by key.
CREATE INDEX sandboxes_demand ON sandboxes (created_at, pool_key);

-- The second net under the guards of the statements: generations and epochs only advance, and deleted stays deleted, whatever statement comes.

CREATE FUNCTION sandbox_only_advances() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.generation < OLD.generation THEN
    RAISE EXCEPTION 'generation of sandbox % would go back from % to %', OLD.id, OLD.generation, NEW.generation;
  END IF;
  IF OLD.desired = 'deleted' AND NEW.desired <> 'deleted' THEN
    RAISE EXCEPTION 'sandbox % is deleted', OLD.id;
  END IF;
  IF NEW.desired <> OLD.desired AND NEW.generation = OLD.generation THEN
    RAISE EXCEPTION 'sandbox % would become % without a new generation', OLD.id, NEW.desired;
  END IF;
  RETURN NEW;
END
$$;
CREATE TRIGGER sandboxes_only_advance BEFORE UPDATE OF generation, desired ON sandboxes FOR EACH ROW EXECUTE FUNCTION sandbox_only_advances();

CREATE FUNCTION lease_only_advances() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.epoch < OLD.epoch OR NEW.seq < OLD.seq THEN
    RAISE EXCEPTION 'lease of host % would go back', OLD.host_id;
  END IF;
  RETURN NEW;
END
$$;
CREATE TRIGGER host_leases_only_advance BEFORE UPDATE ON host_leases FOR EACH ROW EXECUTE FUNCTION lease_only_advances();

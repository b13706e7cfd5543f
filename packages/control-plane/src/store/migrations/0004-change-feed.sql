-- The change feed: events get a position of their tenant from one sealer at a time (reconcilers/event-sealer.ts), behind the oldest transaction still open.

ALTER TABLE events
  ADD COLUMN xid xid8 NOT NULL DEFAULT pg_current_xact_id(),
  -- The order of writing, which no stepped clock changes: of two events of one sandbox the later one waited for the row's lock before it was written.
  ADD COLUMN appended bigint GENERATED ALWAYS AS IDENTITY,
  ADD COLUMN position bigint CHECK (position > 0);
-- The second net: the sealer’s turn is the first.
CREATE UNIQUE INDEX events_by_position ON events (tenant_id, position) WHERE position IS NOT NULL;
CREATE INDEX events_unsealed ON events (appended) WHERE position IS NULL;
-- Nothing reads the history of one sandbox.
DROP INDEX events_by_sandbox;

-- The last position that was given, per tenant; positions are 1, 2, 3 and so on without a hole.
CREATE TABLE event_feeds (
  tenant_id text PRIMARY KEY REFERENCES tenants,
  head bigint NOT NULL CHECK (head > 0)
);

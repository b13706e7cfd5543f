-- What a sandbox's own end of time does to it, and the end that comes when nobody uses it.
ALTER TABLE sandboxes
  ADD COLUMN idle_timeout_seconds integer CHECK (idle_timeout_seconds > 0),
  ADD COLUMN on_timeout text NOT NULL DEFAULT 'delete' CHECK (on_timeout IN ('delete', 'stop')),
  -- When it will have been idle for too long; null while it is not ready, or has no such end.
  ADD COLUMN idle_at timestamptz;
CREATE INDEX sandboxes_idle ON sandboxes (idle_at) WHERE idle_at IS NOT NULL;

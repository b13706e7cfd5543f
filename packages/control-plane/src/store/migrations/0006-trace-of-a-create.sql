-- The W3C trace context of the create. It goes with every start order, so that what a host does for the create is part of the create's trace. On the
-- sandbox, since its assignments may be made later, by another process, and more than once; null when the create was in no trace. A hint without a
-- check: what no host can read changes what an operator sees, and no create fails for it.
ALTER TABLE sandboxes ADD COLUMN traceparent text;

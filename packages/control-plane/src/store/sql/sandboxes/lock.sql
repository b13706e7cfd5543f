-- First lock of every transaction that changes a runtime; then the assignment, the host's lease, its capacity, the quota, in this order.
SELECT * FROM sandglass.sandboxes WHERE id = $1 FOR UPDATE

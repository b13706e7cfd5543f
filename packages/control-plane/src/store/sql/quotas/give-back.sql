-- $5: 1 when its record is kept, 0 when it is deleted.
UPDATE sandglass.quotas SET
  running_sandboxes_used = running_sandboxes_used - 1,
  vcpu_milli_used = vcpu_milli_used - $2,
  memory_mb_used = memory_mb_used - $3,
  disk_gb_used = disk_gb_used - $4,
  kept_sandboxes_used = kept_sandboxes_used + $5::integer
WHERE tenant_id = $1

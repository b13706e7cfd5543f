UPDATE sandglass.quotas SET
  running_sandboxes_used = running_sandboxes_used - 1,
  vcpu_milli_used = vcpu_milli_used - $2,
  memory_mb_used = memory_mb_used - $3,
  disk_gb_used = disk_gb_used - $4
WHERE tenant_id = $1

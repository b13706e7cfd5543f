-- Whether anything waits for room: then no pool may take what comes free. What has waited long no longer counts, or one that never fits would end all pools.
SELECT EXISTS (
  SELECT FROM sandglass.sandboxes
  WHERE observed = 'pending' AND desired = 'running'
    AND (unschedulable_reason LIKE 'pool_shrinking:%' OR (unschedulable_reason LIKE 'no_capacity:%' AND coalesce(wanted_since, created_at) > clock_timestamp() - interval '10 min'))
) AS waiting

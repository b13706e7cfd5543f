/** Each create takes a member of a pool. */
import { RESOURCES } from './careful-client.ts'
import { killAtEveryStep } from './kill-at-step.ts'

const MEMBERS = 2

killAtEveryStep({
  how: 'starts out of a pool',
  // One more is of the default size.
  members: MEMBERS + 1,
  env: {
    SANDGLASS_POOL_FLOOR: '1',
    SANDGLASS_POOL_FLOOR_SPECS: `base,${RESOURCES.vcpu},${RESOURCES.memory_mb},${RESOURCES.disk_gb},${MEMBERS}`,
  },
})

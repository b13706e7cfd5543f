/** Each create boots its runtime. */
import { killAtEveryStep } from './kill-at-step.ts'

killAtEveryStep({ how: 'cold starts', members: 0, env: { SANDGLASS_POOL_FLOOR: '0' } })

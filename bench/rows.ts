/** All rows, in the order in which they are measured within a setting. */
import type { Family } from './bench.ts'
import type { ControlFamily } from './control/control-bench.ts'
import { controlCreates, history } from './control/creates.ts'
import { lists } from './control/lists.ts'
import { placement } from './control/placement.ts'
import { burstCold } from './rows/burst-cold.ts'
import { burstWarm } from './rows/burst-warm.ts'
import { density } from './rows/density.ts'
import { exec } from './rows/exec.ts'
import { execMany } from './rows/exec-many.ts'
import { idleCpu, idleMemory } from './rows/idle.ts'
import { secondStart } from './rows/second-start.ts'
import { staggered } from './rows/staggered.ts'
import { startCold } from './rows/start-cold.ts'
import { startWarm } from './rows/start-warm.ts'
import { streams } from './rows/streams.ts'
import { terminals } from './rows/terminals.ts'
import { upload } from './rows/upload.ts'

/** Of one setting memory comes first, before anything has grown, and what restarts the installation last. */
export const FAMILIES: readonly Family[] = [
  idleMemory,
  secondStart,
  startCold,
  exec,
  execMany,
  streams,
  terminals,
  upload,
  density,
  idleCpu,
  startWarm,
  staggered,
  burstCold,
  burstWarm,
]

/** Of the control plane alone, in the order in which they are measured. */
export const CONTROL_FAMILIES: readonly ControlFamily[] = [controlCreates, placement, lists, history]

/** As in the table of the design. */
export const ROW_IDS: readonly string[] = [
  'S1',
  'S3',
  'S4',
  'S7',
  'S8',
  'S9',
  'E2',
  'E3',
  'E4',
  'T1',
  'T2',
  'F1',
  'F2',
  'D1',
  'D2',
  'C1',
  'C4',
  'C5',
  'C6',
  'C7',
  'C9',
]

/** The lab, for the command line and for tests. */
export { clockEnvironment, secondsOf } from './clock.ts'
export {
  DEFAULT_SLOW_KBIT,
  fillNode,
  healNode,
  isNodeDead,
  killInLab,
  partitionNode,
  pauseNode,
  processesOfNode,
  restartNode,
  resumeNode,
  skewNode,
  slowNode,
} from './faults.ts'
export { labDown, labOf, labUp, requireRoot } from './lab.ts'
export type { LabState } from './lab-state.ts'
export { inNode } from './network.ts'
export { nodeEnvironment } from './node-environment.ts'
export { DEFAULT_SHAPE, LAB_DRIVERS, type LabDriver, type LabPlan, type LabShape, nodeOf } from './plan.ts'
export { type LabNodeStatus, type LabStatus, labStatus } from './status.ts'

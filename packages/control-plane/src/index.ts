/** What other packages' tests and tools need of the control plane. */
export { type Config, DEFAULT_RATES, DEFAULT_TIMING, type Timing } from './config.ts'
export { type ControlPlane, startControlPlane } from './control-plane.ts'
export { CRASH_POINTS, type CrashPoint, type Faults } from './faults/crash-point.ts'
export { CONTROL_PLANE_METRICS } from './metrics/catalogue.ts'
export { migrate } from './store/migrate.ts'
export { dumpSchema } from './store/schema-dump.ts'
export { realWorld, type World } from './world.ts'

/** Every deliberate defect that the simulation has to find. */
import { CONTROL_PLANE_DEFECTS, CONTROL_PLANE_GUARDS } from './control-plane.ts'
import { HOST_AGENT_DEFECTS, HOST_AGENT_GUARDS } from './host-agent.ts'
import { LEASE_GUARDS } from './leases.ts'
import type { Defect } from './search.ts'

export const DEFECTS: readonly Defect[] = [...CONTROL_PLANE_GUARDS, ...CONTROL_PLANE_DEFECTS, ...LEASE_GUARDS, ...HOST_AGENT_GUARDS, ...HOST_AGENT_DEFECTS]

/** Those that a seed is known for. The others are looked for by name only, until their runs meet them soon enough. */
export const FOUND: ReadonlySet<string> = new Set([
  ...['create.unique', 'create.onetx', 'create.ack', 'place.one', 'bump.delete', 'bump.stop', 'stop.proof', 'quota.once', 'rf.epoch'],
  ...['restart.gen', 'retire', 'release.proof', 'pool.epoch', 'pool.ticket'],
  ...['outbox.lost', 'reservation.twice', 'reservation.kept', 'quota.twice', 'quota.free', 'audit.none', 'audit.start', 'event.none', 'feed.hole'],
  ...['usage.open', 'operation.open', 'retry.never', 'sweep.none', 'pool.free', 'start.gen', 'end.unsent'],
  ...['fence.grace', 'fence.clock', 'fence.holder', 'fence.cas', 'audit.fence', 'usage.fence', 'told.epoch', 'warden.apart', 'warden.none', 'restart.deadline'],
  ...['end.kill', 'member.record', 'start.unrecorded'],
])

/** What the parts of one control plane share. Made once, in control-plane.ts. */
import type { Authority } from '@sandglass/identity/authority'
import type { FastifyBaseLogger } from 'fastify'
import type { Config } from './config.ts'
import type { OperationWaiters } from './events/operation-waiters.ts'
import type { WakeBus } from './events/wake-bus.ts'
import type { HostDesk } from './hosts/host-desk.ts'
import type { LeaseSightings } from './hosts/lease-sightings.ts'
import type { TicketSigner } from './hosts/ticket-signer.ts'
import type { RefusalLog } from './identities/refusal-log.ts'
import type { ControlPlaneMetrics } from './metrics/catalogue.ts'
import type { FleetView } from './services/fleet-view.ts'
import type { TemplateScan } from './services/template-scan.ts'
import type { Database } from './store/database.ts'
import type { World } from './world.ts'

export type Log = FastifyBaseLogger

export type Context = {
  readonly config: Config
  readonly world: World
  readonly log: Log
  readonly db: Database
  readonly bus: WakeBus
  readonly waiters: OperationWaiters
  readonly signer: TicketSigner
  readonly authority: Authority
  readonly refusals: RefusalLog
  /** Where machines join; known once it listens. */
  readonly joinUrl: () => string
  readonly desk: HostDesk
  readonly fleet: FleetView
  readonly leases: LeaseSightings
  readonly templates: TemplateScan
  readonly metrics: ControlPlaneMetrics
}

/**
 * The host agent put together: recovery first, then the data plane, then templates and probes, then the link to the control plane.
 *
 * Adopted sandboxes answer as soon as the data plane listens, for gateways that know where: where its port is chosen by the machine, the link
 * tells it. Stopping the agent leaves every sandbox running: channels are closed, guests dial the next agent. Pool members, which are nobody's,
 * end with it.
 */
import { randomBytes } from 'node:crypto'
import { type DriverProbe, LIMITS, newPoolMemberId, Replicas, VERSION } from '@sandglass/contract'
import { capacityOf } from './capacity.ts'
import { HostCensus } from './census/host-census.ts'
import type { Configuration } from './configuration.ts'
import { controlClient } from './control/control-client.ts'
import { hostIdentity } from './control/host-identity.ts'
import { HostLease } from './control/host-lease.ts'
import { HostLink } from './control/host-link.ts'
import { DataPlaneServer } from './data-plane/data-plane-server.ts'
import { startHealthServer } from './data-plane/health-server.ts'
import { type LocalOffer, type LocalState, localRefusal } from './domain/local-limits.ts'
import { memberName } from './domain/runtime-name.ts'
import { probeDrivers } from './drivers/drivers-of.ts'
import { installGuestAgent } from './guest/guest-agent-file.ts'
import { reasonOf } from './log.ts'
import { type AgentWorld, machineOf, wardenPlace } from './machine.ts'
import { hostAgentMetrics } from './metrics/catalogue.ts'
import { observeAgent } from './metrics/observe.ts'
import { PoolPositions } from './pools/pool-positions.ts'
import { Pools } from './pools/pools.ts'
import { DueReports } from './reconcile/due-reports.ts'
import { endEverything } from './reconcile/end-everything.ts'
import { watchExits } from './reconcile/exit-watch.ts'
import { recoveredWorkers } from './reconcile/recovered-workers.ts'
import { residents } from './reconcile/residents.ts'
import { requireLease, routeTo } from './reconcile/route-to.ts'
import { Slots } from './reconcile/slots.ts'
import { usageOf } from './reconcile/usage-of.ts'
import { bootId } from './state/boot-id.ts'
import { hostRecords } from './state/host-records.ts'
import { lockInstance } from './state/instance-lock.ts'
import { writeJson } from './state/json-file.ts'
import type { Layout } from './state/layout.ts'
import { poolRecords } from './state/pool-records.ts'
import { fillReserve } from './state/record-reserve.ts'
import { sandboxRecords } from './state/sandbox-records.ts'
import { unenforced } from './warden/unenforced.ts'
import type { Warden } from './warden/warden.ts'
import { WardenProcess } from './warden/warden-process.ts'

const LOCK_PATIENCE_MS = 10_000

export type Agent = {
  readonly dataPlaneUrl: string
  readonly healthUrl: string
  readonly hostId: string
  readonly layout: Layout
  /** How long sandboxes may run without another renewal. */
  leaseLeftMs(): number
  /** Looks for leftovers now. @returns how many there were */
  census(): Promise<number>
  /** Leaves sandboxes running. */
  stop(): Promise<void>
}

export async function startAgent(configuration: Configuration, world: AgentWorld): Promise<Agent> {
  const { clock, log, tracing, faults, room, chance } = world
  const lock = await lockInstance(configuration.installation, clock, LOCK_PATIENCE_MS)
  let warden: Warden = unenforced(clock, configuration.renewalMs)
  const { lifecycle, layout } = await machineOf(configuration, world, installGuestAgent, (layout) => {
    if (process.getuid?.() === 0) warden = new WardenProcess({ place: wardenPlace(configuration, layout), renewalMs: configuration.renewalMs, clock, log })
    return warden
  })
  const { templates } = lifecycle
  await fillReserve(layout.root)
  const stopping = new AbortController()
  const { signal } = stopping
  // First of all: what is adopted answers only while the deadline that the warden keeps lies ahead.
  const wardenWatched = warden.watch(signal)
  const lease = await HostLease.load(hostRecords(layout.hostRecord, randomBytes), await bootId())
  const reports = new DueReports()
  const metrics = hostAgentMetrics()
  const capacity = capacityOf(configuration.capacity, configuration.reserve, {
    totalMemoryMb: room.totalMemoryMb(),
    freeDiskMb: await room.freeDiskMb(layout.root),
  })
  let probes: readonly DriverProbe[] = []

  const localOffer = (): LocalOffer => ({
    provedDrivers: new Set(probes.filter((probe) => probe.proved).map((probe) => probe.name)),
    templateDigests: new Set(templates.list().map((template) => template.digest)),
    capacity,
    hasLease: warden.leftMs() > 0,
  })
  const localState = async (): Promise<LocalState> => ({
    ...localOffer(),
    sandboxes: workers.occupied + pools.names().length,
    freeDiskMb: await room.freeDiskMb(layout.root),
    freeMemoryMb: room.freeMemoryMb(),
  })
  const starts = new Slots(LIMITS.hostStartsInFlight)
  const shared = { lifecycle, reports, clock, log, metrics, starts, ends: new Slots(LIMITS.hostEndsInFlight) }
  const pools = new Pools({
    ...shared,
    positions: await PoolPositions.load(poolRecords(layout.pools), lease.record.epoch, clock, log),
    newName: () => memberName(newPoolMemberId(randomBytes)),
    bootRefusal: async (spec) => localRefusal(spec, spec.resources, await localState())?.detail,
  })
  const workers = await recoveredWorkers({
    ...shared,
    records: sandboxRecords(layout.sandboxes),
    tracing,
    pools,
    position: () => ({ hostId: lease.record.host_id, epoch: lease.heldEpoch, lastSeq: lease.record.last_seq }),
    localOffer,
    localState,
  })

  const own = await hostIdentity(configuration, lease.record.host_id, world)
  const dataPlane = new DataPlaneServer({
    identity: own.identity,
    refusals: own.refusals,
    route(target) {
      requireLease({ epoch: lease.heldEpoch, leftMs: warden.leftMs(), frozen: warden.frozen })
      return routeTo(workers, target)
    },
    usage: (target) => usageOf(workers, lifecycle, target),
    firstCommandBegins: () => pools.firstCommandBegins(),
    tracing,
    log,
  })
  const dataPlaneUrl = await dataPlane.listen(configuration.dataPlane)

  await templates.refresh()
  probes = await probeDrivers(lifecycle.drivers, log, signal)

  const link = new HostLink({
    // Hosts of one fleet do not all begin with the same replica.
    client: controlClient(new Replicas(configuration.controlUrls, Math.floor(chance() * configuration.controlUrls.length)), own.identity),
    lease,
    warden,
    workers,
    pools,
    reports,
    clock,
    chance,
    log,
    metrics,
    faults,
    describe: () => ({
      name: configuration.hostName,
      version: VERSION,
      capacity,
      drivers: [...probes],
      templates: templates.list().map(({ name, digest }) => ({ name, digest })),
      data_plane_url: dataPlaneUrl,
    }),
    endEverything: () => endEverything(workers, pools),
  })
  const census = await HostCensus.of(residents(workers, pools), lifecycle, room)
  observeAgent(metrics, { link, lease, warden, reports, workers, starts, pools, census, room, dataPlane: dataPlane.counters })
  const health = await startHealthServer(configuration.healthPort, {
    notReadyBecause: () => (link.joined ? undefined : 'not registered with the control plane'),
    metrics: () => metrics.text(),
  })
  await writeJson(layout.announcement, { pid: process.pid, host_id: lease.record.host_id, data_plane_url: dataPlaneUrl, health_url: health.url })
  log.info('host.listening', { data_plane_url: dataPlaneUrl, health_url: health.url })

  const loops = [
    own.renew(signal),
    link.run(signal),
    wardenWatched,
    watchExits(workers, pools, lifecycle, clock, signal),
    census.repeat(signal),
    pools.repeat(signal),
  ].map((loop) =>
    loop.catch((error) => {
      if (!signal.aborted) log.error('host.loop_failed', { reason: reasonOf(error) })
    }),
  )

  return {
    dataPlaneUrl,
    healthUrl: health.url,
    hostId: lease.record.host_id,
    layout,
    leaseLeftMs: () => warden.leftMs(),
    census: () => census.take(),
    async stop() {
      stopping.abort(new Error('the host agent stops'))
      await Promise.all(loops)
      await dataPlane.close()
      own.refusals.close()
      await workers.close()
      await pools.close()
      await health.close()
      warden.close()
      await tracing.stop().catch((error) => log.warn('host.traces_lost', { reason: reasonOf(error) }))
      await lock[Symbol.asyncDispose]()
    },
  }
}

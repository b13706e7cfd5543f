/** /v1/capacity and /v1/quotas: what the fleet offers, and what a tenant may hold of it. */
import type { Capacity, Quota } from '@sandglass/contract'
import type { FastifyInstance } from 'fastify'
import type { RateLimits } from '../admission/rate-limiter.ts'
import { type ExactAmounts, minus, plus, publicAmounts, ZERO } from '../domain/amounts.ts'
import { InvariantBroken } from '../domain/invariant.ts'
import type { QuotaUse } from '../domain/quota.ts'
import { type ClassFigures, type DemandFigures, readClassFigures, readDemandFigures, readStartLead } from '../store/capacity.ts'
import { readQuota } from '../store/quotas.ts'
import { type RouteContext, route } from './route.ts'

export function capacityRoutes(app: FastifyInstance, context: RouteContext): void {
  route(app, context, 'getCapacity', async ({ reply }) => {
    const { db, config, world } = context
    const [classes, demand, startLead] = await Promise.all([readClassFigures(db, config.timing.leaseMs), readDemandFigures(db), readStartLead(db)])
    const byIsolation = [...Map.groupBy(demand, ({ region, driver }) => `${region} ${driver}`).values()]
    const view: Capacity = {
      at: new Date(world.wallMs()).toISOString(),
      classes: classes.map(classView),
      demand: byIsolation.map(demandView),
      waiting: demand.reduce((sum, { waiting }) => sum + waiting, 0),
      oldest_waiting_seconds: demand.length === 0 ? null : Math.max(...demand.map((one) => one.oldest_seconds)),
      start_lead: startLead,
    }
    void reply.send(view)
  })

  route(app, context, 'getQuotas', async ({ principal, reply }) => {
    const quota = await readQuota(context.db, principal.tenantId)
    if (quota === undefined) throw new InvariantBroken(`tenant ${principal.tenantId} has no quota`)
    void reply.send(quotaView(quota, context.config.rates))
  })
}

const classView = (row: ClassFigures): Capacity['classes'][number] => ({
  region: row.region,
  class: row.class,
  hosts: { ready: row.hosts_ready, cordoned: row.hosts_cordoned, lost: row.hosts_lost },
  offered: publicAmounts(row.offered),
  reserved: publicAmounts(row.reserved),
  free: publicAmounts(minus(row.offered, row.reserved)),
  largest_free: publicAmounts(row.largestFree),
  pool: { target: row.pool_target, held: row.pool_held },
})

const most = (a: ExactAmounts, b: ExactAmounts): ExactAmounts => ({
  vcpuMilli: Math.max(a.vcpuMilli, b.vcpuMilli),
  memoryMb: Math.max(a.memoryMb, b.memoryMb),
  diskGb: Math.max(a.diskGb, b.diskGb),
})

/** @param reasons of one region and isolation, one each, the most frequent first */
function demandView(reasons: readonly DemandFigures[]): Capacity['demand'][number] {
  return {
    region: reasons[0]?.region ?? '',
    isolation: reasons[0]?.driver ?? '',
    waiting: reasons.reduce((sum, { waiting }) => sum + waiting, 0),
    asked: publicAmounts(reasons.map(({ asked }) => asked).reduce(plus, ZERO)),
    largest: publicAmounts(reasons.map(({ largest }) => largest).reduce(most, ZERO)),
    oldest_waiting_seconds: Math.max(...reasons.map((one) => one.oldest_seconds)),
    reasons: reasons.map(({ code, waiting }) => ({ code, count: waiting })),
  }
}

function quotaView(quota: QuotaUse, rates: RateLimits): Quota {
  const { keyRequests, tenantRequests, windowSeconds } = rates
  return {
    running_sandboxes: { limit: quota.running_sandboxes_limit, used: quota.running_sandboxes_used },
    vcpu: { limit: quota.vcpu_milli_limit / 1_000, used: quota.vcpu_milli_used / 1_000 },
    memory_mb: { limit: quota.memory_mb_limit, used: quota.memory_mb_used },
    disk_gb: { limit: quota.disk_gb_limit, used: quota.disk_gb_used },
    kept_sandboxes: { limit: quota.kept_sandboxes_limit, used: quota.kept_sandboxes_used },
    weight: quota.fair_weight,
    rates: { key: { requests: keyRequests, window_seconds: windowSeconds }, tenant: { requests: tenantRequests, window_seconds: windowSeconds } },
  }
}

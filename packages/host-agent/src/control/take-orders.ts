/**
 * One line of the watch: check what can be checked without state, then hand it to its sandbox's worker.
 *
 * A ticket whose signature or host is wrong names nothing that can be believed, so it is counted and logged, and no report is made of it.
 */
import type { KeyObject } from 'node:crypto'
import {
  CodedError,
  type HostOrder,
  type PoolOrder,
  parsePoolSpec,
  parseSpec,
  poolKeyOf,
  poolSpecOf,
  type StartTicket,
  verifySigned,
} from '@sandglass/contract'
import { isTraceparent } from '@sandglass/telemetry'
import type { Clock } from '../clock.ts'
import type { Log } from '../log.ts'
import type { Pools } from '../pools/pools.ts'
import type { DueReports } from '../reconcile/due-reports.ts'
import type { SandboxWorkers } from '../reconcile/sandbox-workers.ts'

export type OrderWorld = {
  readonly workers: SandboxWorkers
  readonly pools: Pick<Pools, 'learn' | 'obey'>
  readonly reports: DueReports
  readonly keys: ReadonlyMap<string, KeyObject>
  readonly hostId: string
  readonly clock: Clock
  readonly log: Log
}

/** @throws CodedError `ticket_invalid` when the order cannot be believed */
export function takeOrder(order: Extract<HostOrder, { type: 'start' | 'end' | 'pool' }>, world: OrderWorld): void {
  const payload = verifySigned(order.type === 'start' ? order.ticket : order.order, world.keys)
  if (payload.host !== world.hostId) world.log.error('order.wrong_host', { kind: payload.kind, host: payload.host })
  else if (order.type === 'pool' && payload.kind === 'pool') takePool(payload, order.spec, world)
  else if (order.type === 'end' && payload.kind === 'end') {
    if (payload.pool !== null) world.pools.learn(payload.pool)
    world.workers.of(payload.sandbox).takeEnd(payload)
  } else if (order.type === 'start' && payload.kind === 'start') takeStart(payload, order, world)
  else world.log.error('order.wrong_kind', { type: order.type, kind: payload.kind })
}

function takePool({ epoch, key, version, target }: PoolOrder, text: string, world: OrderWorld): void {
  if (!world.pools.obey(epoch, { key, version, target }, parsePoolSpec(text, key))) world.log.warn('pool.order_stale', { pool: key, epoch, version })
}

function takeStart(
  ticket: StartTicket,
  { spec: text, traceparent }: Pick<Extract<HostOrder, { type: 'start' }>, 'spec' | 'traceparent'>,
  world: OrderWorld,
): void {
  const heardAtMs = world.clock.nowMs()
  let spec: ReturnType<typeof parseSpec>
  try {
    spec = parseSpec(text, ticket)
    if (ticket.pool !== null && poolKeyOf(poolSpecOf(spec)) !== ticket.pool.key) {
      throw new CodedError('ticket_invalid', 'The spec is not of the pool that the ticket claims from.')
    }
  } catch (error) {
    // The ticket is genuine, what came beside it is not what it is bound to.
    if (!(error instanceof CodedError)) throw error
    const { code, message } = error
    world.log.warn('ticket.refused', { sandbox: ticket.sandbox, generation: ticket.generation, code, detail: message })
    world.reports.add({ type: 'refused', sandbox: ticket.sandbox, generation: ticket.generation, code, detail: message })
    return
  }
  world.workers.of(ticket.sandbox).takeStart({ ticket, spec, traceparent: isTraceparent(traceparent) ? traceparent : undefined, heardAtMs })
}

/** What is due to one host, as the lines of its watch: signed, with everything they say from the one read that found them due (guard: mint.read). */
import type { HostOrder, PoolPosition } from '@sandglass/contract'
import { publicAmounts } from '../domain/amounts.ts'
import { invariant } from '../domain/invariant.ts'
import { runtimeSpec } from '../domain/sandbox/runtime-spec.ts'
import type { DueOrder } from '../store/hosts.ts'
import type { DuePoolOrder } from '../store/pools.ts'
import { amountsOfRow } from '../store/sandboxes.ts'
import type { TicketSigner } from './ticket-signer.ts'

export const isEnd = (row: DueOrder): boolean => row.assignment_generation < row.generation

/** What an order says, for telling whether it was written already. */
export const orderKey = (row: DueOrder): string => `${isEnd(row) ? 'end' : 'start'} ${row.sandbox_id} ${row.generation}`
export const poolOrderKey = (row: DuePoolOrder): string => `pool ${row.key} ${row.version}`

export function startLine(signer: TicketSigner, hostId: string, row: DueOrder): HostOrder {
  const amounts = publicAmounts(amountsOfRow(row))
  const traits = {
    driver: row.driver,
    template: { name: row.template_name, digest: row.template_digest },
    resources: amounts,
    networkMode: row.network_mode,
  }
  const ticket = { sandbox: row.sandbox_id, generation: row.generation, host: hostId, epoch: row.epoch, term: row.seq, amounts, pool: positionOf(row) }
  const signed = signer.start(ticket, runtimeSpec(traits, { id: row.sandbox_id, env: row.env }))
  return { type: 'start', ...signed, ...(row.traceparent === null ? {} : { traceparent: row.traceparent }) }
}

export function endLine(signer: TicketSigner, hostId: string, row: DueOrder): HostOrder {
  const position = positionOf(row)
  const pool = position === null ? null : { epoch: row.assignment_epoch, position }
  return { type: 'end', order: signer.end({ sandbox: row.sandbox_id, upto: row.generation, host: hostId, term: row.seq, pool }) }
}

export function poolLine(signer: TicketSigner, hostId: string, { key, epoch, version, target, spec }: DuePoolOrder): HostOrder {
  return { type: 'pool', order: signer.pool({ host: hostId, epoch, key, version, target }), spec }
}

/** guard: pool.ticket: the pool as the claim of a unit left it */
function positionOf({ pool_key: key, pool_version: version, pool_target: target, sandbox_id }: DueOrder): PoolPosition | null {
  if (key === null) return null
  invariant(version !== null && target !== null, `the claim of ${sandbox_id} has no position`)
  return { key, version, target }
}

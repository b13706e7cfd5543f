import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { CANARY_REGION, newSandboxId, type StartTicket } from '@sandglass/contract'
import { decideTicket, type HostPosition, type TicketDecision } from '../../src/domain/decide-ticket.ts'
import type { SandboxPhase, SandboxRecord } from '../../src/domain/sandbox-record.ts'
import { HOST, position, recordIn, ticketOf } from './builders.ts'

type Outcome = TicketDecision['kind'] | Extract<TicketDecision, { kind: 'refuse' }>['code']
const outcomeOf = (decision: TicketDecision): Outcome => (decision.kind === 'refuse' ? decision.code : decision.kind)

/** The guards written a second time, as a table, in the order in which they must be asked. */
function expected(ticket: StartTicket, record: SandboxRecord | undefined, host: HostPosition): Outcome {
  const rules: [boolean, Outcome][] = [
    [ticket.host !== HOST, 'ticket_invalid'],
    [ticket.epoch !== host.epoch, 'stale_epoch'],
    [record !== undefined && ticket.generation === record.high, 'duplicate'],
    [record !== undefined && ticket.generation < record.high, 'stale_generation'],
    [host.lastSeq - ticket.term > 6, 'ticket_expired'],
    [record !== undefined && record.phase !== 'gone', 'wait'],
  ]
  return rules.find(([holds]) => holds)?.[1] ?? 'accept'
}

test('every combination of host, epoch, generation, term and phase is decided as the guards say', () => {
  const phases: (SandboxPhase | undefined)[] = [undefined, 'launching', 'running', 'ending', 'gone']
  let cases = 0
  for (const phase of phases)
    for (const host of [HOST, 'hobbbbbbbbbbbbbbbb'])
      for (const epoch of [2, 3, 4])
        for (const generation of [0, 4, 5, 6, 7])
          for (const lag of [-1, 0, 5, 6, 7, 100]) {
            const record = phase === undefined ? undefined : recordIn(phase)
            const ticket = ticketOf({ host, epoch, generation, term: position.lastSeq - lag })
            assert.equal(
              outcomeOf(decideTicket(ticket, record, position)),
              expected(ticket, record, position),
              JSON.stringify({ phase, host, epoch, generation, lag }),
            )
            cases += 1
          }
  assert.equal(cases, 5 * 2 * 3 * 5 * 6)
})

test('a ticket of a generation that was taken up and has ended is a duplicate, also when it has expired', () => {
  assert.equal(decideTicket(ticketOf({ term: 0 }), recordIn('gone'), position).kind, 'duplicate')
})

test('a ticket for a canary, which would pass the gate of the warden without a lease, is refused', () => {
  const ticket = ticketOf({ sandbox: newSandboxId(CANARY_REGION, randomBytes), generation: 6 })
  assert.equal(outcomeOf(decideTicket(ticket, undefined, position)), 'ticket_invalid')
})

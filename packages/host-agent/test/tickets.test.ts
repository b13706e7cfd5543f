/** What a host agent refuses, on its own disk and with nobody to ask: the control plane here sends whatever a test tells it to. */
import assert from 'node:assert/strict'
import { generateKeyPairSync } from 'node:crypto'
import { existsSync } from 'node:fs'
import { readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { LIMITS, type StartTicket, signPayload } from '@sandglass/contract'
import type { Agent } from '../src/agent.ts'
import { Installation, newSandbox, specOf } from './support/installation.ts'
import { until } from './support/until.ts'

let installation: Installation
let agent: Agent

before(async () => {
  installation = await Installation.create()
  agent = await installation.startAgent()
})
after(() => installation[Symbol.asyncDispose]())

const fake = (sandbox: string, env: Record<string, string> = {}) => specOf(sandbox, { driver: 'fake', env })
const recordFile = (sandbox: string) => join(agent.layout.sandboxes, `${sandbox}.json`)

async function start(sandbox: string, fields: Partial<StartTicket> & { generation: number }): Promise<void> {
  const { ticket, spec } = installation.plane.ticket(await fake(sandbox), { host: agent.hostId, ...fields })
  installation.plane.sendStart(ticket, spec)
}

async function restartAgent(renewPeriodMs: number): Promise<void> {
  installation.plane.renewPeriodMs = renewPeriodMs
  await installation.stopAgent(agent)
  agent = await installation.startAgent()
}

async function untilEnded(sandbox: string, upto: number): Promise<void> {
  installation.plane.sendEnd({ sandbox, upto, host: agent.hostId })
  await installation.plane.untilReported('ended', sandbox, (report) => report.upto === upto)
}

/** Nothing was ever started for it. */
async function assertNothingOf(sandbox: string): Promise<void> {
  assert.deepEqual(installation.plane.reported('ready', sandbox), [])
  assert.deepEqual(
    (await readdir(agent.layout.runtimes)).filter((name) => name.startsWith(sandbox)),
    [],
  )
}

test('a start ticket that is delivered after the delete is refused', async () => {
  const { plane } = installation
  const sandbox = newSandbox()
  const { ticket, spec } = plane.ticket(await fake(sandbox), { generation: 2, host: agent.hostId })
  await untilEnded(sandbox, 3)
  plane.sendStart(ticket, spec)
  assert.equal((await plane.untilReported('refused', sandbox)).code, 'stale_generation')
  await assertNothingOf(sandbox)
})

test('a ticket of an older generation is refused, and the newer runtime goes on', async () => {
  const { plane } = installation
  const sandbox = newSandbox()
  await start(sandbox, { generation: 5 })
  await plane.untilReported('ready', sandbox)
  await start(sandbox, { generation: 4 })
  const refused = await plane.untilReported('refused', sandbox)
  assert.deepEqual([refused.generation, refused.code], [4, 'stale_generation'])
  assert.deepEqual(plane.reported('ended', sandbox), [])
  await untilEnded(sandbox, 6)
})

test('a ticket that is repeated while it runs makes one runtime and tells ready again', async () => {
  const { plane } = installation
  const sandbox = newSandbox()
  await start(sandbox, { generation: 1 })
  await start(sandbox, { generation: 1 })
  await plane.untilReported('ready', sandbox)
  await start(sandbox, { generation: 1 })
  const [first, second] = await until('a second report', () => (plane.reported('ready', sandbox).length >= 2 ? plane.reported('ready', sandbox) : undefined))
  assert.deepEqual(first?.evidence, second?.evidence)
  await untilEnded(sandbox, 2)
})

test('a ticket that is repeated after its runtime has ended starts nothing', async () => {
  const { plane } = installation
  const sandbox = newSandbox()
  const { ticket, spec } = plane.ticket(await fake(sandbox), { generation: 1, host: agent.hostId })
  plane.sendStart(ticket, spec)
  await plane.untilReported('ready', sandbox)
  process.kill(installation.pidOf(sandbox), 'SIGKILL')
  assert.equal((await plane.untilReported('ended', sandbox)).reason, 'runtime_exited')
  const before = plane.reports.length
  plane.sendStart(ticket, spec)
  await plane.barrier(newSandbox(), agent.hostId)
  assert.deepEqual(
    plane.reports.slice(before).filter((report) => report.type === 'ready'),
    [],
  )
})

const forgeries: [name: string, forge: (ticket: StartTicket) => ReturnType<typeof signPayload>][] = [
  ['signed with another key', (ticket) => signPayload(ticket, { id: 'k1', privateKey: generateKeyPairSync('ed25519').privateKey })],
  ['signed with a key that nobody knows', (ticket) => signPayload(ticket, { id: 'k9', privateKey: installation.plane.key.privateKey })],
  [
    'altered after signing',
    (ticket) => ({ ...signPayload(ticket, installation.plane.key), payload: JSON.stringify({ ...ticket, generation: ticket.generation + 1 }) }),
  ],
  ['without a signature', (ticket) => ({ ...signPayload(ticket, installation.plane.key), signature: '' })],
]
for (const [name, forge] of forgeries) {
  test(`a ticket ${name} leaves no trace`, async () => {
    const { plane } = installation
    const sandbox = newSandbox()
    const { ticket, spec } = plane.ticket(await fake(sandbox), { generation: 1, host: agent.hostId })
    plane.sendSigned(forge(ticket), spec)
    await plane.barrier(newSandbox(), agent.hostId)
    assert.equal(existsSync(recordFile(sandbox)), false)
    await assertNothingOf(sandbox)
  })
}

test('a ticket and an end order for another host leave no trace', async () => {
  const { plane } = installation
  const sandbox = newSandbox()
  await start(sandbox, { generation: 1, host: 'hoaaaaaaaaaaaaaaaa' })
  plane.sendEnd({ sandbox, upto: 2, host: 'hoaaaaaaaaaaaaaaaa' })
  await plane.barrier(newSandbox(), agent.hostId)
  assert.equal(existsSync(recordFile(sandbox)), false)
  assert.deepEqual(
    plane.reports.filter((report) => 'sandbox' in report && report.sandbox === sandbox),
    [],
  )
  await assertNothingOf(sandbox)
})

test('an expired ticket is refused once the host has heard of K more terms', async () => {
  const { plane } = installation
  const sandbox = newSandbox()
  const term = plane.seq
  plane.seq += LIMITS.ticketTerms
  // It hears of the next term as it registers.
  await restartAgent(plane.renewPeriodMs)
  await start(sandbox, { generation: 1, term })
  assert.equal((await plane.untilReported('refused', sandbox)).code, 'ticket_expired')
  assert.equal(existsSync(recordFile(sandbox)), false)
  await assertNothingOf(sandbox)
})

for (const [name, offset] of [
  ['past', -1],
  ['future', 1],
] as const) {
  test(`a ticket of a ${name} epoch is refused`, async () => {
    const sandbox = newSandbox()
    await start(sandbox, { generation: 1, epoch: installation.plane.epoch + offset })
    assert.equal((await installation.plane.untilReported('refused', sandbox)).code, 'stale_epoch')
    await assertNothingOf(sandbox)
  })
}

test('a spec that is not the one of the ticket is refused', async () => {
  const { plane } = installation
  const sandbox = newSandbox()
  const { ticket } = plane.ticket(await fake(sandbox), { generation: 1, host: agent.hostId })
  plane.sendStart(ticket, JSON.stringify(await fake(sandbox, { EXTRA: '1' })))
  assert.equal((await plane.untilReported('refused', sandbox)).code, 'ticket_invalid')
  await assertNothingOf(sandbox)
})

test('a spec of another sandbox under a genuine digest is refused', async () => {
  const { plane } = installation
  const [sandbox, other] = [newSandbox(), newSandbox()]
  const { ticket, spec } = plane.ticket(await fake(other), { generation: 1, host: agent.hostId, sandbox })
  plane.sendStart(ticket, spec)
  assert.equal((await plane.untilReported('refused', sandbox)).code, 'ticket_invalid')
  await assertNothingOf(sandbox)
  await assertNothingOf(other)
})

test('an end order below the mark never touches a newer generation', async () => {
  const { plane } = installation
  const sandbox = newSandbox()
  await start(sandbox, { generation: 4 })
  await plane.untilReported('ready', sandbox)
  plane.sendEnd({ sandbox, upto: 3, host: agent.hostId })
  await plane.barrier(newSandbox(), agent.hostId)
  await untilEnded(sandbox, 5)
  assert.deepEqual(
    plane.reported('ended', sandbox).map(({ upto }) => upto),
    [5],
  )
})

test('an end order stops a start in flight', async () => {
  const { plane } = installation
  const sandbox = newSandbox()
  const { ticket, spec } = plane.ticket(await fake(sandbox, { SANDGLASS_FAKE_SCRIPT: '{"guest_silent":true}' }), { generation: 1, host: agent.hostId })
  plane.sendStart(ticket, spec)
  await until('the launch', () => (existsSync(join(agent.layout.runtimes, `${sandbox}-g1`, 'channel/channel.sock')) ? true : undefined))
  const began = performance.now()
  await untilEnded(sandbox, 2)
  assert.ok(performance.now() - began < LIMITS.hostStartMs - 5_000, 'it did not wait for the start to time out')
  assert.equal(plane.reported('ended', sandbox)[0]?.reason, 'ordered')
})

test('a failed start is reported as ended, once nothing is left of it', async () => {
  const { plane } = installation
  const sandbox = newSandbox()
  const { ticket, spec } = plane.ticket(await fake(sandbox, { SANDGLASS_FAKE_SCRIPT: '{"launch_fails":"no room"}' }), { generation: 1, host: agent.hostId })
  plane.sendStart(ticket, spec)
  const ended = await plane.untilReported('ended', sandbox)
  assert.deepEqual([ended.upto, ended.reason, ended.detail], [1, 'start_failed', 'no room'])
  await assertNothingOf(sandbox)
})

test('marks hold across a restart of the agent, and a damaged record refuses every start until an end order heals it', async () => {
  const { plane } = installation
  const [ended, damaged] = [newSandbox(), newSandbox()]
  // No term passes during this test, so no tombstone is old enough to be forgotten.
  await restartAgent(600_000)
  await untilEnded(ended, 7)
  // What is not settled is told again by the next agent, and only the newest of two tickets waits for that.
  await until('its end to be settled', async () => (JSON.parse(await readFile(recordFile(ended), 'utf8')).settled === true ? true : undefined))
  await installation.stopAgent(agent)
  await writeFile(recordFile(damaged), '{"format":1,')
  agent = await installation.startAgent()
  await start(ended, { generation: 7 })
  await start(ended, { generation: 6 })
  assert.equal((await plane.untilReported('refused', ended)).code, 'stale_generation')
  await start(damaged, { generation: 9 })
  assert.equal((await plane.untilReported('refused', damaged)).code, 'internal')
  await untilEnded(damaged, 10)
  await start(damaged, { generation: 11 })
  await plane.untilReported('ready', damaged)
  await untilEnded(damaged, 12)
})

test('a tombstone is forgotten K terms after the order that made it, and not before its end is answered', async () => {
  const { plane } = installation
  await restartAgent(400)
  const sandbox = newSandbox()
  const term = plane.seq
  plane.outcome = (report) => ('sandbox' in report && report.sandbox === sandbox ? 'stale' : 'accepted')
  await untilEnded(sandbox, 1)
  assert.equal(JSON.parse(await readFile(recordFile(sandbox), 'utf8')).high, 1)
  await until('the tombstone to go', () => (existsSync(recordFile(sandbox)) ? undefined : true))
  assert.ok(plane.seq > term + LIMITS.ticketTerms)
})

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type GuestPreamble, newPoolMemberId } from '@sandglass/contract'
import { judgePreamble } from '../../src/domain/judge-preamble.ts'
import { type LocalState, localRefusal } from '../../src/domain/local-limits.ts'
import { planCensus, TRACE_KINDS, type Traces } from '../../src/domain/plan-census.ts'
import { planRecovery } from '../../src/domain/plan-recovery.ts'
import { memberName, parseRuntimeName, runtimeName } from '../../src/domain/runtime-name.ts'
import { recordStart } from '../../src/domain/sandbox-record.ts'
import { recordIn, SANDBOX, spec, ticketOf } from './builders.ts'

const NAME = runtimeName({ sandbox: SANDBOX, generation: 5 })
const MEMBER = memberName(newPoolMemberId(() => new Uint8Array(16)))
const OTHER = runtimeName({ sandbox: 'sblobbbbbbbbbbbbbbbb', generation: 1 })

test('recovery ends a launch in flight, also when its runtime is alive', () => {
  const [action] = planRecovery([recordIn('launching')], new Set([NAME]), new Set([NAME]))
  assert.ok(action?.kind === 'end')
  assert.equal(action.why.reason, 'recovered')
})

test('recovery adopts what ran and is alive, ends what ran and is dead, finishes what was ending, leaves tombstones', () => {
  assert.equal(planRecovery([recordIn('running')], new Set(), new Set([NAME]))[0]?.kind, 'adopt')
  const [dead] = planRecovery([recordIn('running')], new Set(), new Set())
  assert.ok(dead?.kind === 'end' && dead.why.reason === 'runtime_exited')
  assert.equal(planRecovery([recordIn('ending')], new Set([NAME]), new Set([NAME]))[0]?.kind, 'end')
  assert.deepEqual(planRecovery([recordIn('gone')], new Set(), new Set()), [])
})

test('recovery destroys what no record names, and leaves alone what is not a runtime', () => {
  assert.deepEqual(planRecovery([recordIn('running')], new Set([NAME, OTHER, 'lost+found']), new Set([NAME])).slice(1), [{ kind: 'destroy', name: OTHER }])
  assert.deepEqual(planRecovery([recordIn('gone')], new Set([NAME]), new Set()), [{ kind: 'destroy', name: NAME }])
})

const nothing: Traces = { process: new Set(), cgroup: new Set(), netns: new Set(), mount: new Set(), directory: new Set(), runtime_state: new Set() }

for (const kind of TRACE_KINDS) {
  test(`the census finds a leftover ${kind}`, () => {
    assert.deepEqual(planCensus({ ...nothing, [kind]: new Set([NAME]) }, new Set(), new Set()).leftovers, [{ name: NAME, kinds: [kind] }])
  })
}

test('the census leaves alone what is desired and what is not of a runtime, and names what should run and does not', () => {
  const found = { ...nothing, cgroup: new Set([NAME, 'system.slice']), directory: new Set([NAME]) }
  assert.deepEqual(planCensus(found, new Set([NAME]), new Set([NAME])), { leftovers: [], missing: [NAME] })
})

test('names of runtimes are read back, and nothing else is one', () => {
  assert.deepEqual(parseRuntimeName(NAME), { kind: 'sandbox', sandbox: SANDBOX, generation: 5, name: NAME })
  assert.deepEqual(parseRuntimeName(MEMBER), { kind: 'member', name: MEMBER })
  for (const text of ['', SANDBOX, `${SANDBOX}-g`, `${SANDBOX}-g05`, `${SANDBOX}-g5x`, `x${NAME}`, `${NAME}/..`, '../x', 'pm', `${MEMBER}a`, `${MEMBER}-g1`])
    assert.equal(parseRuntimeName(text), undefined)
})

const local: LocalState = {
  hasLease: true,
  provedDrivers: new Set(['fake']),
  templateDigests: new Set([spec.template.digest]),
  capacity: { vcpu: 4, memory_mb: 4_096, disk_gb: 10 },
  sandboxes: 0,
  freeDiskMb: 100_000,
  freeMemoryMb: 8_000,
}

const refusals: [name: string, change: Partial<LocalState>, code: string][] = [
  ['a lease that has run out', { hasLease: false }, 'unavailable'],
  ['a driver that was not proved', { provedDrivers: new Set() }, 'isolation_unavailable'],
  ['a template that is not here', { templateDigests: new Set() }, 'template_not_found'],
  ['more than the host has', { capacity: { vcpu: 0.5, memory_mb: 4_096, disk_gb: 10 } }, 'unschedulable'],
  ['a full host', { sandboxes: 1_000 }, 'unschedulable'],
  ['a full disk', { freeDiskMb: 2_047 }, 'unschedulable'],
  ['too little memory', { freeMemoryMb: 511 }, 'unschedulable'],
]
for (const [name, change, code] of refusals) {
  test(`the host refuses ${name}`, () => assert.equal(localRefusal(spec, spec.resources, { ...local, ...change })?.code, code))
}
test('the host refuses a network mode that it does not have, and a spec beyond its ticket', () => {
  assert.equal(localRefusal({ ...spec, network: { mode: 'open' } }, spec.resources, local)?.code, 'network_mode_unavailable')
  assert.equal(localRefusal(spec, { vcpu: 1, memory_mb: 511, disk_gb: 2 }, local)?.code, 'ticket_invalid')
})
test('the host takes what fits', () => assert.equal(localRefusal(spec, spec.resources, local), undefined))

const preamble: GuestPreamble = {
  protocol: 'sandglass-guest',
  version: 1,
  agent: 'x',
  boot_id: '1'.repeat(32),
  session: '2'.repeat(32),
  sandbox: SANDBOX,
  generation: 5,
  features: [],
}
const expected = { sandbox: SANDBOX, generation: 5, bootId: '1'.repeat(32) }

test('the guest of a member has no identity, and stays the one that dialled first', () => {
  const nobody = { sandbox: null, generation: null, bootId: null }
  const member = { ...nobody, bootId: preamble.boot_id }
  const pristine = { ...preamble, sandbox: null, generation: null }
  assert.equal(judgePreamble(pristine, nobody), undefined)
  assert.equal(judgePreamble(pristine, member), undefined)
  assert.notEqual(judgePreamble(preamble, nobody), undefined, 'it names a sandbox')
  assert.notEqual(judgePreamble({ ...preamble, sandbox: null }, member), undefined, 'it names a generation')
  assert.notEqual(judgePreamble({ ...pristine, boot_id: '3'.repeat(32) }, member), undefined, 'it is another one')
})

test('recovery takes over a claim whose member lives, ends it when the member is dead, and destroys members that nobody had', () => {
  const claimed = recordStart(ticketOf(), spec, { name: MEMBER, evidence: {}, guest_boot_id: preamble.boot_id })
  assert.deepEqual(planRecovery([claimed], new Set([MEMBER]), new Set([MEMBER])), [{ kind: 'adopt', record: claimed, name: MEMBER }])
  assert.equal(planRecovery([claimed], new Set([MEMBER]), new Set())[0]?.kind, 'end')
  assert.deepEqual(planRecovery([recordIn('running')], new Set([MEMBER]), new Set([NAME])).slice(1), [{ kind: 'destroy', name: MEMBER }])
})

test('a guest is spoken to only as what it was made', () => {
  assert.equal(judgePreamble(preamble, expected), undefined)
  assert.equal(judgePreamble({ ...preamble, sandbox: null, generation: null }, { ...expected, bootId: null }), undefined)
  for (const change of [
    { generation: 4 },
    { generation: null },
    { sandbox: 'sblobbbbbbbbbbbbbbbb' },
    { sandbox: null, generation: null },
    { boot_id: '3'.repeat(32) },
  ]) {
    assert.notEqual(judgePreamble({ ...preamble, ...change }, expected), undefined, JSON.stringify(change))
  }
})

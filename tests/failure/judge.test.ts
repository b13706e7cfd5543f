/** The judges themselves: a right picture passes, and each thing that could go wrong with it is called by its name. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Sandbox } from '@sandglass/contract/sandbox'
import { judge, type Picture } from './judge.ts'
import { Ledger } from './ledger.ts'
import type { Thing } from './leftovers.ts'
import { counterFault } from './resident.ts'

const LIVE = 'sbl1aaaaaaaaaaaaaaaa'
const ENDED = 'sbl1bbbbbbbbbbbbbbbb'

function sandbox(id: string, key: string, over: Partial<Sandbox> = {}): Sandbox {
  return {
    id,
    name: null,
    status: 'ready',
    status_reason: null,
    unschedulable_reason: null,
    desired: 'running',
    writable_layer: 'present',
    restart_policy: 'never',
    restarts: 0,
    generation: 1,
    template: { name: 'base', digest: 'sha256:0' },
    resources: { vcpu: 0.25, memory_mb: 256, disk_gb: 1 },
    isolation: null,
    network: { mode: 'none' },
    env_names: [],
    metadata: { load: 'run', key },
    region: 'l1',
    host_id: null,
    gateway_url: 'http://127.0.0.1:1',
    gateway_urls: ['http://127.0.0.1:1'],
    ttl_seconds: 3_600,
    idle_timeout_seconds: null,
    on_timeout: 'delete',
    created_at: '2026-01-01T00:00:00Z',
    ready_at: null,
    expires_at: '2026-01-01T01:00:00Z',
    idle_at: null,
    ended_at: null,
    start_path: null,
    start_timings_ms: null,
    operation_id: null,
    ...over,
  }
}

function ledger(): Ledger {
  const made = new Ledger()
  made.asked.add('one').add('two')
  made.created('one', LIVE)
  made.created('two', ENDED)
  made.deleteAsked.add(ENDED)
  made.deleted(ENDED)
  return made
}

const things: readonly Thing[] = (['process', 'cgroup', 'netns', 'file', 'record'] as const).map((kind) => ({ kind, what: kind, sandbox: LIVE }))
const ended = sandbox(ENDED, 'two', { status: 'terminated', desired: 'deleted' })

const right: Picture = {
  sandboxes: [sandbox(LIVE, 'one'), ended],
  hosts: [
    {
      id: 'hoaaaaaaaaaaaaaaaa',
      name: 'host',
      region: 'l1',
      status: 'ready',
      cordoned: false,
      drain: null,
      labels: {},
      epoch: 1,
      version: '0',
      capacity: { vcpu: 8, memory_mb: 8_192, disk_gb: 100 },
      reserved: { vcpu: 0.25, memory_mb: 256 + 1_024, disk_gb: 1 + 4 },
      drivers: [],
      sandboxes: 1,
      pool: { target: 2, held: 2, memory_mb: 1_024, disk_gb: 4 },
      lease: { state: 'late', lease_seconds: 30, fence_grace_seconds: 10, fenced_at: null },
      renewed_at: null,
      lease_age_seconds: null,
      created_at: '2026-01-01T00:00:00Z',
    },
  ],
  quota: { sandboxes: 1, vcpu: 0.25, memory_mb: 256, disk_gb: 1 },
  things,
}

const withHost = (reserved: { vcpu: number; memory_mb: number; disk_gb: number }): Picture => ({
  ...right,
  hosts: right.hosts.map((host) => ({ ...host, reserved, pool: { target: 0, held: 0, memory_mb: 0, disk_gb: 0 } })),
})

const DEFECTS: Readonly<Record<string, { picture: Picture; says: RegExp }>> = {
  'an acknowledged create is lost': { picture: { ...right, sandboxes: [ended] }, says: /acknowledged for one, is not there/ },
  'a key made two': { picture: { ...right, sandboxes: [...right.sandboxes, sandbox('sbl1cccccccccccccccc', 'one')] }, says: /the key one made/ },
  'a sandbox that nobody asked for': {
    picture: { ...right, sandboxes: [...right.sandboxes, sandbox('sbl1cccccccccccccccc', 'three')] },
    says: /which nobody sent/,
  },
  'a deleted one came back': { picture: { ...right, sandboxes: [sandbox(LIVE, 'one'), sandbox(ENDED, 'two')] }, says: /was deleted and is ready/ },
  'a live one has ended': { picture: { ...right, sandboxes: [sandbox(LIVE, 'one', { status: 'failed' }), ended] }, says: /was never deleted and is failed/ },
  'one is stuck': { picture: { ...right, sandboxes: [sandbox(LIVE, 'one', { status: 'starting' }), ended] }, says: /is still starting/ },
  'capacity is still reserved': { picture: withHost({ vcpu: 0.5, memory_mb: 512, disk_gb: 2 }), says: /hosts have reserved/ },
  'capacity is not reserved': { picture: withHost({ vcpu: 0, memory_mb: 0, disk_gb: 0 }), says: /hosts have reserved/ },
  'quota is still charged': { picture: { ...right, quota: { ...right.quota, sandboxes: 2 } }, says: /the quota says/ },
  'something is left over': { picture: { ...right, things: [...things, { kind: 'netns', what: '/run/netns/x', sandbox: ENDED }] }, says: /left over: netns/ },
  'the runtime of a live one is gone': { picture: { ...right, things: things.filter(({ kind }) => kind !== 'process') }, says: /missing: process/ },
}

describe('judging a picture', () => {
  test('a right one passes', () => assert.deepEqual(judge(ledger(), right), []))
  for (const [name, { picture, says }] of Object.entries(DEFECTS)) {
    test(`turns red when ${name}`, () => assert.match(judge(ledger(), picture).join('\n'), says))
  }
  test('a key that answers another id is a fault at once', () => {
    const seen = ledger()
    seen.created('one', ENDED)
    assert.match(seen.faults.join('\n'), /answered .* after it had answered/)
  })
})

describe('judging a counter', () => {
  test('going on', () => assert.deepEqual(counterFault(4, 3, '3\n4\n5'), { fault: undefined, offset: 8, next: 5 }))
  test('turns red when it starts again', () => assert.match(counterFault(4, 3, '1\n2\n').fault ?? '', /says "1" where 3 is due/))
  test('turns red when a number is lost', () => assert.match(counterFault(4, 3, '3\n5\n').fault ?? '', /says "5" where 4 is due/))
})

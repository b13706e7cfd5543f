/**
 * LI1–LI5, LI9 and LI10 with three hosts and two control planes: what the cases of one machine ask for (tests/e2e/cases), asked of a fleet. Each has a
 * deliberate defect that turns it red.
 */
import assert from 'node:assert/strict'
import { after, before } from 'node:test'
import { Sandbox, type Sandglass, SandglassError } from '@sandglass/sdk'
import { defineCase, type Size } from '../../e2e/case.ts'
import { until } from '../persist.ts'
import { Fleet } from './fleet.ts'

const SETTLED_MS = 30_000
const LIMIT_MS = 240_000
const HOSTS = ['h1', 'h2', 'h3'] as const
const REPLICAS = ['cp1', 'cp2'] as const
const MEMBERS_PER_HOST = 17
const POOLED = { vcpu: 0.1, memoryMb: 128, diskGb: 1 }

/** Without pools a runtime carries the name of its sandbox, so it can be counted from outside. */
let plain: Fleet
let pooled: Fleet | undefined
before(async () => {
  plain = await Fleet.start({ hosts: HOSTS.length })
})
after(async () => {
  await plain[Symbol.asyncDispose]()
  await pooled?.[Symbol.asyncDispose]()
})

async function withPools(): Promise<Fleet> {
  const floors = `base,${POOLED.vcpu},${POOLED.memoryMb},${POOLED.diskGb},${MEMBERS_PER_HOST},fake`
  const rate = { SANDGLASS_RATE_KEY_REQUESTS: '100000', SANDGLASS_RATE_TENANT_REQUESTS: '100000' }
  pooled ??= await Fleet.start({ hosts: HOSTS.length }, { SANDGLASS_POOL_FLOOR: '1', SANDGLASS_POOL_FLOOR_SPECS: floors, ...rate })
  return pooled
}

/** What a case sees of the fleet. */
type Seen = { readonly status: string; readonly generation: number; readonly expiresAtMs: number; readonly bootId: string; readonly host: string | null }
type View = {
  create(options?: { ttlSeconds?: number; pooled?: boolean; script?: object; through?: number }): Promise<string>
  /** Without waiting for it. */
  begin(script: object): Promise<string>
  seen(id: string): Promise<Seen>
  list(): Promise<readonly string[]>
  /** Processes that serve it, over all hosts. */
  runtimes(id: string): number
  reservedMb(): Promise<number>
  /** Through one of the replicas. */
  stop(id: string, through: number): Promise<Seen>
  start(id: string, through: number): Promise<Seen>
  remove(id: string, through?: number): Promise<void>
  extend(id: string, ttlSeconds: number): Promise<Seen>
  run(id: string, text: string): Promise<string>
  killRuntime(id: string): void
  killAgent(node: string, point?: string): Promise<void>
  restartEverything(): Promise<void>
  cordon(node: string, is: boolean): Promise<void>
  hostName(id: string): Promise<string>
  /** Units, over all hosts. */
  heldByPools(): Promise<number>
}

function viewOf(fleet: Fleet): View {
  const all: Sandglass = fleet.client()
  const through = (index = 0): Sandglass => fleet.client(REPLICAS[index % REPLICAS.length] ?? 'cp1')
  const seenOf = ({ status, resource }: Sandbox): Seen => {
    const { evidence } = resource.isolation ?? {}
    const bootId = typeof evidence === 'object' && evidence !== null && 'guest_boot_id' in evidence ? String(evidence.guest_boot_id) : ''
    return { status, generation: resource.generation, expiresAtMs: Date.parse(resource.expires_at), bootId, host: resource.host_id }
  }
  const get = (id: string, client = all): Promise<Sandbox> => Sandbox.get(id, { client })
  const scripted = (script: object | undefined) => (script === undefined ? {} : { env: { SANDGLASS_FAKE_SCRIPT: JSON.stringify(script) } })
  return {
    async create({ ttlSeconds = 3_600, pooled = false, script, through: index } = {}) {
      const sandbox = await fleet.create({
        ttlSeconds,
        restartPolicy: 'never',
        ...scripted(script),
        ...(pooled ? { resources: POOLED } : {}),
        client: index === undefined ? all : through(index),
      })
      return sandbox.id
    },
    begin: async (script) => (await Sandbox.create({ ...fleet.options, ...scripted(script), wait: false })).sandbox.id,
    seen: async (id) => seenOf(await get(id)),
    async list() {
      const ids: string[] = []
      for await (const { id } of Sandbox.list({ client: all })) ids.push(id)
      return ids
    },
    runtimes: (id) => HOSTS.reduce((count, node) => count + fleet.guests(node).filter(({ sandboxId }) => sandboxId === id).length, 0),
    async reservedMb() {
      let total = 0
      for await (const { reserved, pool } of all.hosts.list()) total += reserved.memory_mb - pool.memory_mb
      return total
    },
    async stop(id, index) {
      const sandbox = await get(id, through(index))
      await sandbox.stop()
      return seenOf(sandbox)
    },
    async start(id, index) {
      const sandbox = await get(id, through(index))
      await sandbox.start()
      return seenOf(sandbox)
    },
    async remove(id, index) {
      await (await get(id, through(index))).delete()
    },
    async extend(id, ttlSeconds) {
      const sandbox = await get(id)
      await sandbox.extend(ttlSeconds)
      return seenOf(sandbox)
    },
    run: async (id, text) => (await (await get(id)).exec(['echo', text])).stdout,
    killRuntime(id) {
      for (const node of HOSTS) for (const guest of fleet.guests(node)) if (guest.sandboxId === id) process.kill(guest.pid, 'SIGKILL')
    },
    async killAgent(node, point) {
      if (point === undefined) await fleet.kill(node, 'role')
      await fleet.restart(node, point === undefined ? {} : { SANDGLASS_CRASH_AT: point }).catch(() => undefined)
    },
    async restartEverything() {
      for (const node of [...HOSTS, ...REPLICAS]) {
        await fleet.kill(node, 'role')
        await fleet.restart(node)
      }
    },
    cordon: async (node, is) => void (await (is ? all.hosts.cordon(node) : all.hosts.uncordon(node))),
    hostName: async (id) => fleet.hostOf(await get(id)),
    async heldByPools() {
      let held = 0
      for await (const { pool } of all.hosts.list()) held += pool.held
      return held
    },
  }
}

const subject = async () => ({ value: viewOf(plain), dispose: async () => {} })
const pooledSubject = async () => ({ value: viewOf(await withPools()), dispose: async () => {} })
const gone = (error: unknown): boolean => error instanceof SandglassError && ['sandbox_not_found', 'sandbox_ended'].includes(error.code)

async function settles(view: View, id: string, count: number, when: string): Promise<void> {
  await until(SETTLED_MS, 'runtimes', () => (view.runtimes(id) === count ? true : undefined)).catch(() =>
    assert.equal(view.runtimes(id), count, `${count} runtimes serve it ${when}`),
  )
}

async function givenBack(view: View, before: number, when: string): Promise<void> {
  let now = -1
  await until(SETTLED_MS, 'reservations', async () => {
    now = await view.reservedMb()
    return now === before ? true : undefined
  }).catch(() => assert.equal(now, before, `what is reserved returns to what it was ${when}`))
}

const several = (size: Size): number => (size === 'full' ? 8 : 4)

defineCase<View>({
  id: 'LI1',
  title: 'agents that are killed on three hosts in the middle of creates: what runs is what should',
  subject,
  timeoutMs: LIMIT_MS,
  async run(view, size) {
    const before = await view.reservedMb()
    const ids: string[] = []
    for (const node of size === 'full' ? HOSTS : HOSTS.slice(0, 1)) {
      const creating = Promise.all(Array.from({ length: several(size) }, () => view.create({ script: { launch_delay_ms: 200 } })))
      await view.killAgent(node)
      ids.push(...(await creating))
    }
    for (const id of ids) await settles(view, id, 1, 'after the agents were killed')
    for (const id of ids) await view.remove(id)
    for (const id of ids) await settles(view, id, 0, 'when it is deleted')
    await givenBack(view, before, 'after all that')
  },
  defects: {
    'a killed agent leaves a runtime behind': {
      breaks: (real) => {
        let killed = false
        return {
          ...real,
          killAgent: async (node) => {
            killed = true
            await real.killAgent(node)
          },
          runtimes: (id) => real.runtimes(id) + (killed ? 1 : 0),
        }
      },
      says: /1 runtimes serve it after the agents were killed/,
    },
  },
})

defineCase<View>({
  id: 'LI2',
  title: 'every agent and every control plane restarted with twenty running: the same ids, still usable',
  subject,
  timeoutMs: LIMIT_MS,
  async run(view, size) {
    const ids = await Promise.all(Array.from({ length: size === 'full' ? 20 : 4 }, () => view.create()))
    const before = await Promise.all(ids.map(async (id) => (await view.seen(id)).bootId))
    await view.restartEverything()
    const listed = await view.list()
    for (const [index, id] of ids.entries()) {
      assert.ok(listed.includes(id), `${id} is in the list after the restarts`)
      assert.equal(await view.run(id, 'here'), 'here\n')
      assert.equal((await view.seen(id)).bootId, before[index], 'it is the same runtime')
    }
    await Promise.all(ids.map((id) => view.remove(id)))
  },
  defects: {
    'a sandbox vanishes from the list': {
      breaks: (real) => ({ ...real, list: async () => (await real.list()).slice(2) }),
      says: /is in the list after the restarts/,
    },
  },
})

defineCase<View>({
  id: 'LI3',
  title: 'a delete works from every state, through either control plane, and reservations return to zero',
  subject,
  timeoutMs: LIMIT_MS,
  async run(view) {
    const before = await view.reservedMb()
    const scripts = [{}, { launch_delay_ms: 2_000 }, { launch_fails: 'as told' }, { guest_silent: true }, { exit_after_ms: 300 }]
    for (const [index, script] of scripts.entries()) {
      const id = await view.begin(script)
      await view.remove(id, index)
      await view.remove(id, index + 1).catch((error: unknown) => assert.ok(gone(error), `deleting twice: ${String(error)}`))
      await settles(view, id, 0, `when it is deleted (${JSON.stringify(script)})`)
    }
    await givenBack(view, before, 'after deletes from every state')
  },
  defects: {
    'failures keep what they reserved': {
      breaks: (real) => {
        let begun = 0
        return {
          ...real,
          begin: (script) => {
            begun += 1
            return real.begin(script)
          },
          reservedMb: async () => (await real.reservedMb()) + 256 * begun,
        }
      },
      says: /what is reserved returns to what it was/,
    },
  },
})

defineCase<View>({
  id: 'LI4',
  title: 'stops, starts and deletes at the same time, through both control planes: never two runtimes, one generation each',
  subject,
  timeoutMs: LIMIT_MS,
  async run(view, size) {
    const id = await view.create()
    await settles(view, id, 1, 'when it is ready')
    const both = <T>(work: (index: number) => Promise<T>): Promise<T[]> => Promise.all(Array.from({ length: several(size) }, (_, index) => work(index)))
    const stopped = new Set((await both((index) => view.stop(id, index))).map(({ generation }) => generation))
    assert.equal(stopped.size, 1, 'stops at the same time are one stop')
    await settles(view, id, 0, 'when it is stopped')
    const started = new Set((await both((index) => view.start(id, index))).map(({ generation }) => generation))
    assert.equal(started.size, 1, 'starts at the same time are one start')
    await settles(view, id, 1, 'after starts at the same time')
    await both((index) => view.remove(id, index).catch((error: unknown) => assert.ok(gone(error), String(error))))
    await settles(view, id, 0, 'when it is deleted')
  },
  defects: {
    'each replica starts one of its own': {
      breaks: (real) => {
        let starts = 0
        return {
          ...real,
          start: (id, index) => {
            starts += 1
            return real.start(id, index)
          },
          runtimes: (id) => real.runtimes(id) + (starts > 1 && real.runtimes(id) > 0 ? 1 : 0),
        }
      },
      says: /1 runtimes serve it after starts at the same time/,
    },
  },
})

defineCase<View>({
  id: 'LI5',
  title: 'lists, reads, commands and shorter extensions through either control plane never bring the deadline nearer',
  subject,
  timeoutMs: LIMIT_MS,
  async run(view) {
    const id = await view.create({ ttlSeconds: 7_200 })
    const { expiresAtMs } = await view.seen(id)
    await view.list()
    await view.run(id, 'x')
    assert.ok((await view.extend(id, 60)).expiresAtMs >= expiresAtMs, 'a shorter extension keeps the deadline')
    assert.ok((await view.seen(id)).expiresAtMs >= expiresAtMs)
    assert.ok((await view.extend(id, 9_000)).expiresAtMs > expiresAtMs, 'a longer one moves it')
    await view.remove(id)
  },
  defects: {
    'an extension sets the deadline whatever it was': {
      breaks: (real) => ({ ...real, extend: async (id, seconds) => ({ ...(await real.extend(id, seconds)), expiresAtMs: Date.now() + seconds * 1_000 }) }),
      says: /a shorter extension keeps the deadline/,
    },
  },
})

defineCase<View>({
  id: 'LI9',
  title: 'many claims on a small pool through two control planes, one host cordoned: nobody shares a member, nothing goes to that host',
  subject: pooledSubject,
  timeoutMs: LIMIT_MS,
  async run(view, size) {
    await until(60_000, 'the pools being filled', async () => {
      return (await view.heldByPools()) >= HOSTS.length * MEMBERS_PER_HOST ? true : undefined
    })
    await view.cordon('h3', true)
    try {
      const ids = await Promise.all(Array.from({ length: size === 'full' ? 200 : 12 }, (_, index) => view.create({ pooled: true, through: index })))
      const boots = new Map<string, string>()
      for (const id of ids) {
        const { bootId } = await view.seen(id)
        assert.ok(!boots.has(bootId), `${id} and ${boots.get(bootId) ?? ''} share a runtime`)
        boots.set(bootId, id)
        assert.notEqual(await view.hostName(id), 'h3', 'nothing goes to a cordoned host')
      }
      await Promise.all(ids.map((id) => view.remove(id)))
    } finally {
      await view.cordon('h3', false)
    }
  },
  defects: {
    'two claims get one member': {
      breaks: (real) => ({ ...real, seen: async (id) => ({ ...(await real.seen(id)), bootId: 'the same' }) }),
      says: /share a runtime/,
    },
    'a claim goes to a cordoned host': {
      breaks: (real) => ({ ...real, hostName: async () => 'h3' }),
      says: /nothing goes to a cordoned host/,
    },
  },
})

defineCase<View>({
  id: 'LI10',
  title: 'a runtime that is killed behind its agent’s back is seen within seconds by either control plane, and calls fail fast',
  subject,
  timeoutMs: LIMIT_MS,
  async run(view) {
    const id = await view.create()
    view.killRuntime(id)
    let status = ''
    await until(5_000, 'the loss', async () => {
      status = (await view.seen(id)).status
      return status === 'failed' ? true : undefined
    }).catch(() => assert.equal(status, 'failed', 'the killed runtime is seen within seconds'))
    const began = performance.now()
    await assert.rejects(view.run(id, 'x'), { code: 'sandbox_failed' })
    assert.ok(performance.now() - began < 2_000, 'a call fails fast')
    await view.remove(id)
  },
  defects: {
    'the list still says ready': {
      breaks: (real) => ({ ...real, seen: async (id) => ({ ...(await real.seen(id)), status: 'ready' }) }),
      says: /the killed runtime is seen within seconds/,
    },
  },
})

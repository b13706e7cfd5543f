/**
 * A host that is cut off, and the takeover. Measured on both sides of the partition: a program in the sandbox writes down the machine's uptime every few
 * milliseconds, on the host's own disk, so its last line is the last moment at which the old runtime executed anything; the first process of the new one is
 * seen from outside. All nodes of a lab share one monotonic clock, so the two can be compared; their wall clocks are set hours apart.
 */
import assert from 'node:assert/strict'
import { existsSync, readFileSync, rmSync } from 'node:fs'
import { request } from 'node:https'
import { join } from 'node:path'
import { after, afterEach, before, describe, test } from 'node:test'
import { LIMITS } from '@sandglass/contract/limits'
import { Sandbox } from '@sandglass/sdk'
import { until } from '../persist.ts'
import { Fleet, measured, SHORT_LEASE_MS } from './fleet.ts'

const HOURS = 3_600
/** Behind lease and grace: a look of the observer, the pause before a restart, placement, the start (C8). */
const TAKEOVER_MS = 10_000
const TICK_SECONDS = 0.02
/** How far apart the last tick and the freeze may lie. */
const SLACK_MS = 250

const uptimeMs = (): number => Number(readFileSync('/proc/uptime', 'utf8').split(' ')[0]) * 1_000

type Timing = { readonly leaseMs: number; readonly marginMs: number; readonly stopMs: number; readonly graceMs: number; readonly periodMs: number }

const timingOf = (leaseMs: number): Timing => {
  const share = leaseMs / LIMITS.leaseMs
  return {
    leaseMs,
    marginMs: LIMITS.leaseMarginMs * share,
    // The freezer is as fast as it is, whatever the lease.
    stopMs: LIMITS.leaseStopMs * share,
    graceMs: LIMITS.fenceGraceMs * share,
    periodMs: LIMITS.renewPeriodMs * share,
  }
}

class Ticking {
  readonly sandbox: Sandbox
  readonly host: string
  readonly #file: string

  private constructor(sandbox: Sandbox, host: string, file: string) {
    this.sandbox = sandbox
    this.host = host
    this.#file = file
  }

  /** A sandbox in which something happens all the time. */
  static async start(fleet: Fleet): Promise<Ticking> {
    const sandbox = await fleet.create()
    const file = join(fleet.home, `ticks-${sandbox.id}`)
    await sandbox.spawn(['sh', '-c', `while :; do cut -d' ' -f1 /proc/uptime >> ${file}; sleep ${TICK_SECONDS}; done`])
    await until(10_000, 'the first tick', () => (existsSync(file) ? true : undefined))
    return new Ticking(sandbox, await fleet.hostOf(sandbox), file)
  }

  /** When its runtime last did anything, on the machine's monotonic clock. */
  get lastMs(): number {
    return Number(readFileSync(this.#file, 'utf8').trimEnd().split('\n').at(-1)) * 1_000
  }
}

type TakenOver = { readonly cutMs: number; readonly stoppedMs: number; readonly readyMs: number; readonly on: string }

/** Cuts its host off and waits until it is ready elsewhere. */
async function takeover(fleet: Fleet, ticking: Ticking, timing: Timing): Promise<TakenOver> {
  const { sandbox, host } = ticking
  const { generation } = sandbox.resource
  const others = fleet.state.plan.nodes.filter(({ kind, name }) => kind === 'host-agent' && name !== host).map(({ name }) => name)
  const cutAt = uptimeMs()
  fleet.partition(host)
  const limitMs = timing.leaseMs + timing.graceMs + TAKEOVER_MS
  let bornAt = 0
  const born = until(limitMs + 5_000, 'a new runtime', () => {
    const found = others.find((node) => fleet.guests(node).some((guest) => guest.sandboxId === sandbox.id))
    if (found !== undefined) bornAt = uptimeMs()
    return found
  })
  const ready = measured(limitMs + 5_000, 'it being ready elsewhere', async () => {
    await sandbox.refresh().catch(() => undefined)
    return sandbox.status === 'ready' && sandbox.resource.generation > generation ? true : undefined
  })
  const [{ tookMs }, on] = await Promise.all([ready, born])
  assert.ok(tookMs <= limitMs, `ready elsewhere after ${tookMs} ms; ${limitMs} are allowed`)
  const { lastMs } = ticking
  const stoppedMs = Math.round(lastMs - cutAt)
  assert.ok(lastMs < bornAt, `the old runtime still ran ${Math.round(lastMs - bornAt)} ms after the new one was there`)
  assert.ok(
    stoppedMs <= timing.leaseMs - timing.marginMs + timing.stopMs + SLACK_MS,
    `the old runtime ran for ${stoppedMs} ms behind the cut; lease, margin and stopping allow ${timing.leaseMs - timing.marginMs + timing.stopMs}`,
  )
  assert.ok(stoppedMs >= timing.leaseMs - timing.marginMs - 2 * timing.periodMs - SLACK_MS, `it stopped after ${stoppedMs} ms already`)
  return { cutMs: Math.round(bornAt - cutAt), stoppedMs, readyMs: tookMs, on }
}

const told = ({ stoppedMs, cutMs, readyMs, on }: TakenOver): string =>
  `cut off: stopped by itself after ${stoppedMs} ms, a new runtime on ${on} after ${cutMs} ms, ready after ${readyMs} ms`

/** A report that was long on its way: that a sandbox ended, in an epoch of the host that is over. @returns the status of its answer */
function reportLate(fleet: Fleet, node: string, late: { hostId: string; epoch: number; sandboxId: string }): Promise<number> {
  const { url, identityPem } = fleet.machine(node)
  const ended = { type: 'ended', sandbox: late.sandboxId, upto: 1, reason: 'runtime_exited', detail: null, pool_version: null }
  const body = JSON.stringify({ epoch: late.epoch, items: [ended] })
  return new Promise((resolve, reject) => {
    // The lab's own control plane, whose certificate names no address.
    const options = { method: 'POST', key: identityPem, cert: identityPem, rejectUnauthorized: false, headers: { 'content-type': 'application/json' } }
    const asked = request(new URL(`/internal/v1/hosts/${late.hostId}/reports`, url), options, (response) => {
      response.resume()
      resolve(response.statusCode ?? 0)
    })
    asked.on('error', reject)
    asked.end(body)
  })
}

async function healed(fleet: Fleet): Promise<void> {
  for (const { name } of fleet.state.plan.nodes) {
    fleet.heal(name)
    if (fleet.isDead(name)) await fleet.restart(name)
  }
  const client = fleet.client()
  await until(60_000, 'every host being back', async () => {
    for await (const host of client.hosts.list()) if (host.status !== 'ready') return undefined
    return true
  })
}

describe('a short lease', () => {
  let fleet: Fleet
  const timing = timingOf(SHORT_LEASE_MS)
  before(async () => {
    fleet = await Fleet.start({ hosts: 3 }, { SANDGLASS_LEASE_MS: String(SHORT_LEASE_MS) })
  })
  after(() => fleet[Symbol.asyncDispose]())
  afterEach(() => healed(fleet))

  test('a host that is cut off stops by itself, is taken over, and gives up what it lost when it returns', { timeout: 120_000 }, async (context) => {
    const ticking = await Ticking.start(fleet)
    const { sandbox, host } = ticking
    const dies = await until(60_000, 'another one on the same host', async () => {
      const other = await fleet.create({ restartPolicy: 'never' })
      if ((await fleet.hostOf(other)) === host) return other
      await other.delete()
      return undefined
    })
    const old = fleet.guests(host).filter((guest) => guest.sandboxId === sandbox.id)
    assert.equal(old.length, 1)
    const [held] = await fleet.sql<{ id: string; epoch: number }>(
      `SELECT h.id, l.epoch FROM sandglass.hosts h JOIN sandglass.host_leases l ON l.host_id = h.id WHERE h.name = '${host}'`,
    )
    context.diagnostic(told(await takeover(fleet, ticking, timing)))
    assert.equal((await sandbox.exec(['echo', 'here'])).stdout, 'here\n')
    assert.equal(fleet.guests(host).filter((guest) => guest.sandboxId === sandbox.id).length, 1, 'the old one is still there, and cannot run')
    fleet.heal(host)
    const { tookMs } = await measured(30_000, 'the old runtime being gone', () =>
      fleet.guests(host).some((guest) => guest.sandboxId === sandbox.id) ? undefined : true,
    )
    context.diagnostic(`healed: the old runtime is gone after ${tookMs} ms`)
    assert.ok(ticking.lastMs < uptimeMs() - tookMs, 'it never ran again')
    const late = { hostId: held?.id ?? '', epoch: Number(held?.epoch), sandboxId: dies.id }
    assert.equal(await reportLate(fleet, host, late), 409)
    const rows = await fleet.sql<{ action: string; subject: string }>('SELECT action, subject FROM sandglass.audit_log')
    assert.ok(rows.some(({ action, subject }) => action === 'report.late' && subject === dies.id))
    assert.ok(rows.some(({ action }) => action === 'host.fence'))
    await dies.delete()
    assert.equal((await sandbox.exec(['echo', 'still'])).stdout, 'still\n')
    await sandbox.delete()
  })

  for (const [what, skews] of [
    ['the host five hours ahead', { host: 5, control: 0 }],
    ['the host five hours behind and control planes three ahead', { host: -5, control: 3 }],
    ['control planes seven hours behind', { host: 0, control: -7 }],
  ] as const) {
    test(`the same with ${what}`, { timeout: 120_000 }, async (context) => {
      const ticking = await Ticking.start(fleet)
      fleet.skew(ticking.host, skews.host * HOURS)
      for (const node of ['cp1', 'cp2']) fleet.skew(node, skews.control * HOURS)
      const taken = await takeover(fleet, ticking, timing)
      context.diagnostic(told(taken))
      await ticking.sandbox.delete()
    })
  }

  test('clocks that jump by hours lose no lease and prolong none', { timeout: 120_000 }, async (context) => {
    const ticking = await Ticking.start(fleet)
    const epochs = async (): Promise<string> => JSON.stringify(await fleet.sql('SELECT host_id, epoch FROM sandglass.host_leases ORDER BY host_id'))
    const before = await epochs()
    const nodes = ['h1', 'h2', 'h3', 'cp1', 'cp2']
    for (const hours of [4, -6, 0]) {
      for (const node of nodes) fleet.skew(node, hours * HOURS)
      const end = performance.now() + timing.leaseMs + timing.graceMs
      await until(30_000, 'a lease and its grace', () => (performance.now() > end ? true : undefined))
      assert.equal(await epochs(), before, `after a jump to ${hours} h every host holds what it held`)
      assert.equal((await ticking.sandbox.exec(['echo', 'here'])).stdout, 'here\n')
    }
    for (const node of nodes) fleet.skew(node, node.startsWith('h') ? -2 * HOURS : 9 * HOURS)
    context.diagnostic(told(await takeover(fleet, ticking, timing)))
    await ticking.sandbox.delete()
  })

  test('a host that dies during a start: its sandbox starts elsewhere, and nothing is left over', { timeout: 120_000 }, async (context) => {
    const script = JSON.stringify({ launch_delay_ms: 3_000 })
    const { sandbox } = await Sandbox.create({ ...fleet.options, env: { SANDGLASS_FAKE_SCRIPT: script }, wait: false })
    const host = await until(10_000, 'it being placed', async () => {
      const name = await fleet.hostOf(sandbox).catch(() => undefined)
      return name !== undefined && ['assigned', 'starting'].includes(sandbox.status) ? name : undefined
    })
    await fleet.kill(host)
    const limitMs = timing.leaseMs + timing.graceMs + TAKEOVER_MS + 3_000
    const { tookMs } = await measured(limitMs, 'it being ready elsewhere', async () => {
      await sandbox.refresh()
      return sandbox.status === 'ready' ? true : undefined
    })
    assert.notEqual(await fleet.hostOf(sandbox), host)
    context.diagnostic(`${host} died during the start: ready elsewhere after ${tookMs} ms`)
    await fleet.restart(host)
    assert.deepEqual(fleet.guests(host), [])
    await sandbox.delete()
    await until(20_000, 'everything being given back', async () => {
      for await (const each of fleet.client().hosts.list()) if (each.reserved.memory_mb !== 0) return undefined
      return true
    })
  })

  test('an agent that is paused: its host stops what it runs all the same', { timeout: 120_000 }, async (context) => {
    const ticking = await Ticking.start(fleet)
    const { sandbox, host } = ticking
    const { generation } = sandbox.resource
    const began = uptimeMs()
    fleet.pause(host)
    const { tookMs } = await measured(timing.leaseMs + timing.graceMs + TAKEOVER_MS, 'it being ready elsewhere', async () => {
      await sandbox.refresh()
      return sandbox.status === 'ready' && sandbox.resource.generation > generation ? true : undefined
    })
    const stoppedMs = Math.round(ticking.lastMs - began)
    context.diagnostic(`paused: stopped after ${stoppedMs} ms, ready elsewhere after ${tookMs} ms`)
    assert.ok(stoppedMs <= timing.leaseMs - timing.marginMs + timing.stopMs + SLACK_MS, `it ran for ${stoppedMs} ms`)
    fleet.resume(host)
    await until(30_000, 'the old runtime being gone', () => (fleet.guests(host).some((guest) => guest.sandboxId === sandbox.id) ? undefined : true))
    await sandbox.delete()
  })

  test('a disk that is full: the host refuses new work, what runs goes on, and nothing acknowledged is lost', { timeout: 120_000 }, async (context) => {
    const ticking = await Ticking.start(fleet)
    fleet.fill(ticking.host)
    const made = await Promise.all(Array.from({ length: 6 }, () => fleet.create()))
    const hosts = await Promise.all(made.map((sandbox) => fleet.hostOf(sandbox)))
    assert.ok(!hosts.includes(ticking.host), `all are elsewhere: ${hosts.join(' ')}`)
    assert.equal((await ticking.sandbox.exec(['echo', 'goes on'])).stdout, 'goes on\n')
    fleet.heal(ticking.host)
    const { hosts: operators } = fleet.client()
    const others = ['h1', 'h2', 'h3'].filter((name) => name !== ticking.host)
    for (const name of others) await operators.cordon(name)
    const { tookMs } = await measured(60_000, 'the host taking work again', async () => {
      const sandbox = await fleet.create()
      assert.equal(await fleet.hostOf(sandbox), ticking.host)
      await sandbox.delete()
      return true
    })
    for (const name of others) await operators.uncordon(name)
    context.diagnostic(`with room again the host takes work after ${tookMs} ms`)
    await Promise.all([ticking.sandbox, ...made].map((sandbox) => sandbox.delete()))
  })
})

test('with the lease as published: lost to ready elsewhere within lease, grace and ten seconds (C8)', { timeout: 180_000 }, async (context) => {
  await using fleet = await Fleet.start({ hosts: 2, gateways: 1 })
  const ticking = await Ticking.start(fleet)
  context.diagnostic(told(await takeover(fleet, ticking, timingOf(LIMITS.leaseMs))))
  rmSync(join(fleet.home, `ticks-${ticking.sandbox.id}`), { force: true })
})

/**
 * What the lease of a host is for, on a real installation with gVisor: a program inside writes down the time again and again, so it tells by itself when
 * it stood still. The host agent is stopped, the control plane is away, the installation is taken down.
 */
import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { after, describe, test } from 'node:test'
import { textOf, type Where } from './api.ts'
import { CarefulClient } from './careful-client.ts'
import { InstallationUnderTest } from './installation-under-test.ts'
import { Ledger } from './ledger.ts'
import { nameOfHome } from './leftovers.ts'
import { until } from './persist.ts'
import { killRole, livingRole, type Role, replaced } from './roles.ts'
import { faultsAfterAll } from './verify.ts'

/** Between two renewals lie five seconds. */
const RENEWAL_MS = 8_000
/** Shorter than what a renewal is good for, less the pause before the next one. */
const OUTAGE_MS = 2_500
const FREEZE_MS = 1_000
/** Stands still for so much longer. */
const HELD_MS = 4_000
const TICK_MS = 50
/** A program on a busy machine may be late by so much without having been stopped. */
const LATE_MS = 1_500
const TEST_LIMIT_MS = 3 * 60_000
const SEEN_LIMIT_MS = 60_000

const TICKER = `import time\nwhile True:\n  with open("/root/ticks", "a") as ticks: ticks.write(f"{time.time_ns() // 1000000}\\n")\n  time.sleep(${TICK_MS / 1_000})`

const installation = await InstallationUnderTest.start({ SANDGLASS_LEASE_RENEWAL_MS: `${RENEWAL_MS}`, SANDGLASS_POOL_FLOOR: '0' })
after(() => installation[Symbol.asyncDispose]())

const name = nameOfHome(installation.home)

/** Of the group (version 2) that everything of sandboxes is below. */
function isFrozen(): boolean {
  const mount = readFileSync('/proc/mounts', 'utf8')
    .split('\n')
    .map((line) => line.split(' '))
    .find(([, , type]) => type === 'cgroup2')
  return /^frozen 1$/m.test(readFileSync(join(mount?.[1] ?? '', `sandglass-${name}`, 'cgroup.events'), 'utf8'))
}

const untilFrozen = (frozen: boolean): Promise<true> =>
  until(SEEN_LIMIT_MS, frozen ? 'the freeze' : 'the thaw', () => (isFrozen() === frozen ? true : undefined))

/** So that the pause is the longest of all. */
async function stillFor(ms: number): Promise<void> {
  const over = Date.now() + ms
  await until(ms * 2, 'the pause', () => (Date.now() > over ? true : undefined))
  assert.ok(isFrozen())
}

function signal(role: Role, what: 'SIGSTOP' | 'SIGCONT'): number {
  const living = livingRole(installation.home, role)
  assert.ok(living !== undefined, `${role} lives`)
  process.kill(living.pid, what)
  return Date.now()
}

type Gap = { readonly from: number; readonly to: number }

class Ticking {
  readonly #client: CarefulClient
  readonly where: Where

  private constructor(client: CarefulClient, where: Where) {
    this.#client = client
    this.where = where
  }

  static async start(client: CarefulClient): Promise<Ticking> {
    const where = await client.create(`${client.run}-one`)
    const ticking = new Ticking(client, where)
    await client.persist('the program', () => installation.api.startInBackground(where, { argv: ['python3', '-c', TICKER], process_key: 'ticker' }))
    await until(SEEN_LIMIT_MS, 'a tick', async () => ((await ticking.ticks()).length > 0 ? true : undefined))
    return ticking
  }

  async ticks(): Promise<number[]> {
    const bytes = await this.#client.persist('reading', () => installation.api.readFile(this.where, '/root/ticks')).catch(() => new Uint8Array())
    return textOf(bytes).trim().split('\n').filter(Boolean).map(Number)
  }

  /** The longest time in which it wrote nothing, as it says itself. @param since ticks after it count */
  async gap(since: number): Promise<Gap> {
    await until(SEEN_LIMIT_MS, 'a tick after it', async () => ((await this.ticks()).some((at) => at > since) ? true : undefined))
    const ticks = await this.ticks()
    return ticks
      .slice(1)
      .reduce<Gap>((longest, to, index) => (to - (ticks[index] ?? to) > longest.to - longest.from ? { from: ticks[index] ?? to, to } : longest), {
        from: 0,
        to: 0,
      })
  }
}

async function withTicking(run: string, check: (ticking: Ticking) => Promise<void>): Promise<void> {
  const client = new CarefulClient(installation.api, new Ledger(), `${run}-${process.pid}`)
  const ticking = await Ticking.start(client)
  await check(ticking)
  const { status } = await installation.api.getSandbox(ticking.where.id)
  assert.equal(status, 'ready')
  await client.delete(ticking.where.id)
  assert.deepEqual(await faultsAfterAll(installation, client), [])
}

describe('a host without its lease', () => {
  test('a stopped host agent: what runs stands still by the deadline, and goes on when the agent does', { timeout: TEST_LIMIT_MS }, () =>
    withTicking('stopped', async (ticking) => {
      const stopped = signal('host-agent', 'SIGSTOP')
      await untilFrozen(true)
      const frozen = Date.now()
      assert.ok(frozen - stopped < RENEWAL_MS + FREEZE_MS, `frozen ${frozen - stopped} ms after the agent was stopped`)
      await stillFor(HELD_MS)
      const continued = signal('host-agent', 'SIGCONT')
      await untilFrozen(false)
      const gap = await ticking.gap(continued)
      assert.ok(gap.from <= stopped + RENEWAL_MS + FREEZE_MS, `its own last tick came ${gap.from - stopped} ms after the agent was stopped`)
      assert.ok(gap.to >= continued, 'and the next one after the agent went on')
      process.stdout.write(`  stopped by itself ${gap.from - stopped} ms after the agent was, went on ${gap.to - continued} ms after it did\n`)
    }),
  )

  test('a killed host agent that comes back in time: nothing stands still', { timeout: TEST_LIMIT_MS }, () =>
    withTicking('killed', async (ticking) => {
      await replaced(installation.home, 'host-agent', killRole(installation.home, 'host-agent'), SEEN_LIMIT_MS)
      const { from, to } = await ticking.gap(Date.now())
      assert.ok(to - from < LATE_MS, `it stood still for ${to - from} ms`)
    }),
  )

  for (const role of ['control-plane', 'postgres'] as const) {
    test(`an outage of ${role} that is shorter than the bound freezes nothing`, { timeout: TEST_LIMIT_MS }, () =>
      withTicking(`short-${role}`, async (ticking) => {
        signal(role, 'SIGSTOP')
        const over = Date.now() + OUTAGE_MS
        const frozen = await until(OUTAGE_MS * 2, 'the end of the outage', () => (isFrozen() ? true : Date.now() > over ? false : undefined))
        const continued = signal(role, 'SIGCONT')
        assert.equal(frozen, false)
        const { from, to } = await ticking.gap(continued)
        assert.ok(to - from < LATE_MS, `it stood still for ${to - from} ms`)
      }),
    )
  }

  test('a longer outage of the control plane: stands still, is not ended, goes on', { timeout: TEST_LIMIT_MS }, () =>
    withTicking('long', async (ticking) => {
      signal('control-plane', 'SIGSTOP')
      await untilFrozen(true)
      await stillFor(HELD_MS)
      const continued = signal('control-plane', 'SIGCONT')
      await untilFrozen(false)
      assert.ok((await ticking.gap(continued)).to >= continued)
    }),
  )

  test('after `down` sandboxes stand still, and the next `up` lets them go on', { timeout: TEST_LIMIT_MS }, () =>
    withTicking('down', async (ticking) => {
      await installation.down()
      await untilFrozen(true)
      await stillFor(HELD_MS)
      const upAgain = Date.now()
      await installation.up()
      await untilFrozen(false)
      assert.ok((await ticking.gap(Date.now())).to >= upAgain)
    }),
  )

  test('the warden runs once, outside of what it freezes', () => {
    const wardens = installation.inventory().filter(({ kind, what }) => kind === 'process' && basename(what.split(' ')[1] ?? '') === 'sandglass-warden')
    assert.equal(wardens.length, 1)
    assert.ok(existsSync(join('/run/sandglass', name, 'deadline')))
  })
})

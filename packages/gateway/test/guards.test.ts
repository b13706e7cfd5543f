/** Each guard of the ownership protocol that the gateway holds: its scenario passes, and fails when the guard is off. On a clock that the test moves. */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { type Access, CodedError, parseSandboxId, type Route, type SandboxId } from '@sandglass/contract'
import { type Mutation, mutantOf } from '@sandglass/testkit'
import { type ControlClient, silentLog, systemWorld, type World } from '../src/index.ts'

const SOURCE = join(import.meta.dirname, '../src')
const idOf = (text: string): SandboxId => parseSandboxId(text) ?? assert.fail(text)
const SANDBOX = idOf('sbl1abcdefghijklmnop')
const OTHER = idOf('sbl1bbbbbbbbbbbbbbbb')
const KEY = 'a'.repeat(64)
const HOST = `ho${'a'.repeat(16)}`
const route = (change: Partial<Route> = {}): Route => ({ host_id: HOST, data_plane_url: 'http://h', generation: 3, epoch: 1, valid_for_ms: 30_000, ...change })

/** Time that passes when the test says so; what is due meanwhile is called at its moment. */
class Time {
  nowMs = 1_000
  #timers: { atMs: number; callback: () => void }[] = []

  timer(ms: number, callback: () => void): () => void {
    const timer = { atMs: this.nowMs + ms, callback }
    this.#timers.push(timer)
    return () => {
      this.#timers = this.#timers.filter((one) => one !== timer)
    }
  }

  async pass(ms: number): Promise<void> {
    const untilMs = this.nowMs + ms
    for (;;) {
      await settled()
      const [next] = this.#timers.filter((one) => one.atMs <= untilMs).sort((a, b) => a.atMs - b.atMs)
      if (next === undefined) break
      this.#timers = this.#timers.filter((one) => one !== next)
      this.nowMs = Math.max(this.nowMs, next.atMs)
      next.callback()
    }
    this.nowMs = untilMs
  }
}

/** Everything that waits for no timer has gone as far as it goes. */
const settled = (): Promise<void> => new Promise((resolve) => setImmediate(() => setImmediate(resolve)))

type Parts = Awaited<ReturnType<typeof partsOf>>
async function partsOf(source: string) {
  const load = (file: string) => import(join(source, file))
  const { AccessDesk }: typeof import('../src/auth/access-desk.ts') = await load('auth/access-desk.ts')
  const { LiveSessions }: typeof import('../src/auth/live-sessions.ts') = await load('auth/live-sessions.ts')
  const { SessionCheck }: typeof import('../src/auth/session-check.ts') = await load('auth/session-check.ts')
  const { RouteTable }: typeof import('../src/routes/route-table.ts') = await load('routes/route-table.ts')
  const time = new Time()
  const world: World = { ...systemWorld(silentLog), nowMs: () => time.nowMs, timer: (ms, callback) => time.timer(ms, callback) }
  /** What the control plane answers, and how long that takes; undefined: it is away. */
  const control: { answer: Partial<Access> | undefined; tookMs: number; questions: number } = { answer: { route: route() }, tookMs: 0, questions: 0 }
  const client: ControlClient = {
    access: async () => {
      control.questions += 1
      if (control.answer === undefined) throw new CodedError('unavailable')
      time.nowMs += control.tookMs
      return { tenant_id: 'te', api_key_id: 'ak', role: 'member', status: 'ready', status_reason: null, route: null, ...control.answer }
    },
    // biome-ignore lint/correctness/useYield: nobody follows it here
    feed: async function* () {
      throw new Error('there is none')
    },
  }
  const table = new RouteTable(world.nowMs)
  const desk = new AccessDesk(client, table, world)
  const sessions = new LiveSessions()
  const check = new SessionCheck(desk, sessions, world)
  check.feedConnected()
  check.start()
  const open = async (id = SANDBOX) => sessions.open(await desk.grant(KEY, id, 'member'), 'member')
  return { time, control, table, desk, sessions, check, open }
}

const closedAs = (session: { readonly signal: AbortSignal }): string | undefined => {
  const reason: unknown = session.signal.reason
  return session.signal.aborted && reason instanceof CodedError ? reason.code : undefined
}

const GUARDS: readonly { name: string; says: string; off: readonly Mutation[]; scenario: (parts: Parts) => Promise<void> }[] = [
  {
    name: 'route.sent',
    says: 'a route lives from its question on, however late the answer is',
    off: [
      { file: 'auth/access-desk.ts', replace: 'const askedAtMs = this.#world.nowMs()', by: 'let askedAtMs = this.#world.nowMs()' },
      {
        file: 'auth/access-desk.ts',
        replace: 'const answer = { access, askedAtMs, sequence }',
        by: 'askedAtMs = this.#world.nowMs(); const answer = { access, askedAtMs, sequence }',
      },
    ],
    scenario: async ({ time, control, table, open }) => {
      control.tookMs = 20_000
      const session = await open()
      assert.equal(session.validUntilMs, 31_000)
      control.answer = undefined
      await time.pass(9_999)
      assert.notEqual(table.get(SANDBOX), undefined)
      await time.pass(1)
      assert.equal(table.get(SANDBOX), undefined)
    },
  },
  {
    name: 'route.end',
    says: 'what nobody confirms ends with its route, whether or not anybody answers, and not sooner',
    off: [{ file: 'auth/session-check.ts', replace: 'if (session.validUntilMs > nowMs) continue', by: 'if (session.validUntilMs > 0) continue' }],
    scenario: async ({ time, control, open }) => {
      const session = await open()
      control.answer = undefined
      await time.pass(29_000)
      assert.equal(closedAs(session), undefined, 'an outage that is shorter kills nothing')
      await time.pass(2_000)
      assert.equal(closedAs(session), 'lost_contact')
    },
  },
  {
    name: 'route.asked',
    says: 'what is open is asked about several times in the life of its route, so that an outage of 19 s ends none whenever it begins',
    off: [{ file: 'auth/live-sessions.ts', replace: 'const CHECKS_PER_ROUTE = 5', by: 'const CHECKS_PER_ROUTE = 1.2' }],
    scenario: async ({ time, control, open }) => {
      // The host renewed five seconds before each question.
      control.answer = { route: route({ valid_for_ms: 25_000 }) }
      const session = await open()
      for (let outages = 0; outages < 8; outages += 1) {
        await time.pass(5_000 + outages * 700)
        control.answer = undefined
        await time.pass(18_900)
        assert.equal(closedAs(session), undefined, `outage ${outages}`)
        control.answer = { route: route({ valid_for_ms: 25_000 }) }
      }
    },
  },
  {
    name: 'route.gen',
    says: 'a route of an older generation never takes the place of a newer one',
    off: [{ file: 'routes/route-table.ts', replace: 'known.generation > route.generation', by: 'known.generation < 0' }],
    scenario: async ({ table, time }) => {
      table.learn(SANDBOX, route({ generation: 5 }), time.nowMs)
      table.learn(SANDBOX, route({ generation: 4 }), time.nowMs)
      assert.equal(table.get(SANDBOX)?.generation, 5)
    },
  },
  {
    name: 'fence.session',
    says: 'a fence closes what is open to the host, of every sandbox at once, and nothing elsewhere or in a newer epoch',
    off: [{ file: 'auth/session-check.ts', replace: 'if (session.isOn(event.host_id, event.epoch)) session.close(reason)', by: 'void [session, reason]' }],
    scenario: async ({ control, check, open }) => {
      const fenced = [await open(), await open(OTHER)]
      control.answer = { route: route({ host_id: `ho${'b'.repeat(16)}` }) }
      check.event({ type: 'sandbox_changed', sandbox_id: SANDBOX, generation: 3 })
      const elsewhere = await open()
      control.answer = { route: route({ epoch: 2, generation: 9 }) }
      check.event({ type: 'sandbox_changed', sandbox_id: SANDBOX, generation: 3 })
      const newer = await open()
      check.event({ type: 'host_fenced', host_id: HOST, epoch: 2 })
      assert.deepEqual(fenced.map(closedAs), ['session_revoked', 'session_revoked'])
      assert.deepEqual([elsewhere, newer].map(closedAs), [undefined, undefined])
    },
  },
  {
    name: 'fence.route',
    says: 'what was remembered of a fenced host lets nobody in any more',
    off: [
      { file: 'auth/access-desk.ts', replace: '(route === null || isBehind(route.host_id))', by: 'route !== undefined' },
      { file: 'auth/access-desk.ts', replace: 'this.#routes.forgetHost(hostId, epoch)', by: '' },
    ],
    scenario: async ({ control, check, open, table }) => {
      await open()
      check.event({ type: 'host_fenced', host_id: HOST, epoch: 2 })
      assert.equal(table.get(SANDBOX), undefined)
      control.answer = { status: 'failed' }
      await assert.rejects(open(), { code: 'sandbox_failed' })
    },
  },
]

for (const { name, says, off, scenario } of GUARDS) {
  test(`${name}: ${says}`, async () => {
    await scenario(await partsOf(SOURCE))
  })

  test(`${name} off: its test goes red`, async () => {
    using mutant = mutantOf(SOURCE, off)
    const parts = await partsOf(mutant.source)
    await assert.rejects(scenario(parts))
  })
}

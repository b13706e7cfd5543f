/** In which order a claim is made durable and told. The host is a script; the member's guest is one, too. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { newPoolMemberId, poolKeyOf, poolSpecOf } from '@sandglass/contract'
import { memberName } from '../src/domain/runtime-name.ts'
import type { BootedRuntime } from '../src/lifecycle/boot-runtime.ts'
import { SandboxWorker } from '../src/reconcile/sandbox-worker.ts'
import { HOST, recordIn, SANDBOX, spec, TERM, ticketOf } from './domain/builders.ts'
import { ChannelUnderTest } from './support/channel-directory.ts'
import { ScriptedGuest } from './support/scripted-guest.ts'
import { ScriptedHost } from './support/scripted-host.ts'
import { until } from './support/until.ts'

const pool = { key: poolKeyOf(poolSpecOf(spec)), version: 8, target: 1 }
const order = { ticket: ticketOf({ pool }), spec, traceparent: undefined, heardAtMs: performance.now() }

class Claim implements AsyncDisposable {
  readonly host = new ScriptedHost()
  readonly worker = new SandboxWorker(this.host.world, SANDBOX, undefined)
  readonly #under: ChannelUnderTest

  private constructor(under: ChannelUnderTest) {
    this.#under = under
  }

  /** A host whose pool has one member. */
  static async open(): Promise<Claim> {
    const claim = new Claim(await ChannelUnderTest.open({ sandbox: null, generation: null }))
    const { host } = claim
    await ScriptedGuest.dial(claim.#under.path, (stream, headers) => {
      host.happened.push(`guest ${headers[':method']} ${headers[':path']}`)
      stream.respond({ ':status': 200 })
      stream.end('{}')
    })
    await until('the guest', () => (claim.#under.channel.connected ? true : undefined))
    const runtime: BootedRuntime = {
      name: memberName(newPoolMemberId(() => new Uint8Array(16))),
      driver: host.lifecycle.driver('fake'),
      channel: claim.#under.channel,
      guestBootId: '1'.repeat(32),
      evidence: {},
      defaultCwd: '/',
      launched: Promise.resolve(),
      laps: {},
      giveTo: () => void host.happened.push('given'),
    }
    const note = (what: string) => (): void => void host.happened.push(what)
    host.claimed = { runtime, taken: note('taken'), spoil: note('spoilt'), putBack: note('put back') }
    return claim
  }

  async untilHappened(what: string): Promise<void> {
    await until(what, () => (this.host.happened.includes(what) ? true : undefined))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.worker.close()
    await this.#under[Symbol.asyncDispose]()
  }
}

test('the pick is on disk before the member learns whose it is (member.record), and ready is told before the second write', async () => {
  await using claim = await Claim.open()
  claim.worker.takeStart(order)
  await claim.untilHappened('write running 5')
  assert.deepEqual(claim.host.happened, ['write launching 5', 'taken', 'given', 'guest PUT /v1/identity', 'ready 5', 'write running 5', 'put back'])
  assert.equal(claim.worker.record?.runtime?.path, 'claimed')
})

test('a claim is a hit in the trace of its create, with the phases of a claim alone', async () => {
  await using claim = await Claim.open()
  const { recorded } = claim.host
  claim.worker.takeStart({ ...order, traceparent: `00-${'c'.repeat(32)}-${'d'.repeat(16)}-01` })
  await claim.untilHappened('write running 5')
  const [whole, ...phases] = recorded.spans
  assert.equal(whole?.attributes['sandglass.pool'], 'hit')
  assert.equal(whole.attributes['sandglass.outcome'], 'ready')
  assert.deepEqual(
    phases.map(({ name }) => name),
    ['accept', 'pick', 'record', 'identity', 'limits'].map((phase) => `sandbox.start.${phase}`),
  )
})

test('a pick that cannot be written gives the member to nobody (member.record)', async () => {
  await using claim = await Claim.open()
  claim.host.failures.add('write launching 5')
  claim.worker.takeStart(order)
  await claim.untilHappened('refused 5')
  assert.deepEqual(claim.host.happened, ['write launching 5 fails', 'spoilt', 'refused 5', 'put back'])
  assert.deepEqual(
    claim.host.recorded.spans.flatMap(({ ended }) => ended?.error ?? []),
    ['unavailable'],
  )
})

test('a ticket that grew too old while its claim waited puts the member back', async () => {
  await using claim = await Claim.open()
  const { host } = claim
  const member = await host.claimed
  let come = (): void => {}
  host.claimed = new Promise((resolve) => {
    come = () => resolve(member)
  })
  claim.worker.takeStart(order)
  host.lastSeq += 1
  come()
  await claim.untilHappened('put back')
  assert.deepEqual(host.happened, ['refused 5', 'put back'])
})

test('the end of a claim is told with the version of its pool, once the pool has come down to it (ended.pool)', async () => {
  const host = new ScriptedHost()
  let settle = (_: number): void => {}
  host.settled = new Promise((resolve) => {
    settle = resolve
  })
  const known = { epoch: 3, position: pool }
  new SandboxWorker(host.world, SANDBOX, { ...recordIn('running'), pool: known }).takeEnd({
    kind: 'end',
    sandbox: SANDBOX,
    upto: 6,
    host: HOST,
    term: TERM,
    pool: known,
  })
  await until('the end on disk', () => (host.happened.includes('write gone 6') ? true : undefined))
  for (let turn = 0; turn < 10; turn += 1) await host.clock.wait(0)
  assert.equal(host.happened.at(-1), 'write gone 6', 'nothing is told yet')
  settle(9)
  await until('the end', () => (host.happened.includes('write gone 6 settled') ? true : undefined))
  assert.deepEqual(host.happened.slice(-2), ['ended 6 ordered pool 9', 'write gone 6 settled'])
})

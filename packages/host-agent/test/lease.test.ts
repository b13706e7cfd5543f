/**
 * The lease of a host, from the renewal to what stands still: a real warden, real runtimes of both drivers, an agent that is cut off, stopped,
 * killed, and refused. Leases are short here; nothing else is.
 */
import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import type { RuntimeSpec } from '@sandglass/contract'
import type { Agent } from '../src/agent.ts'
import { cgroupPids, unifiedHierarchy } from '../src/cgroups/cgroup-tree.ts'
import { listProcesses, sendSignal } from '../src/processes/process-table.ts'
import { GatewayClient } from './support/gateway-client.ts'
import { Installation, newSandbox, specOf } from './support/installation.ts'
import { MortalAgent } from './support/mortal-agent.ts'
import { until } from './support/until.ts'

const RENEWAL_MS = 1_500
const RENEW_PERIOD_MS = 200
/** The protocol allows the freeze five seconds. */
const PROMPT_MS = 500
const CLEAR_MS = 1_000

const DRIVERS: readonly RuntimeSpec['driver'][] = ['gvisor', 'fake']

const short = async (): Promise<Installation> => {
  const installation = await Installation.create({ SANDGLASS_LEASE_RENEWAL_MS: `${RENEWAL_MS}` })
  installation.plane.renewPeriodMs = RENEW_PERIOD_MS
  return installation
}

const runDir = (installation: Installation): string => join('/run/sandglass', installation.installation)
const groupOf = (installation: Installation): string => join(unifiedHierarchy() ?? '', `sandglass-${installation.installation}`)
const isFrozen = (installation: Installation): boolean => /^frozen 1$/m.test(readFileSync(join(groupOf(installation), 'cgroup.events'), 'utf8'))
const wardenPid = (installation: Installation): number | undefined =>
  listProcesses((argv) => argv.includes('keep') && argv.at(-1) === runDir(installation))[0]?.pid
const untilFrozen = (installation: Installation, frozen: boolean): Promise<true> =>
  until(frozen ? 'the freeze' : 'the thaw', () => (isFrozen(installation) === frozen ? true : undefined), RENEWAL_MS * 4)

/** A sandbox in which a program writes how often it has come by. */
class Ticking {
  readonly installation: Installation
  readonly sandbox = newSandbox()
  readonly #url: string
  #gateway: GatewayClient | undefined

  private constructor(installation: Installation, url: string) {
    this.installation = installation
    this.#url = url
  }

  static async start(installation: Installation, host: string, url: string, driver: RuntimeSpec['driver']): Promise<Ticking> {
    const ticking = new Ticking(installation, url)
    const { plane } = installation
    const { ticket, spec } = plane.ticket(await specOf(ticking.sandbox, { driver }), { generation: 1, host })
    plane.sendStart(ticket, spec)
    await plane.untilReported('ready', ticking.sandbox)
    const shell = `i=0; while :; do i=$((i+1)); echo $i > /tmp/ticks-${ticking.sandbox}; sleep 0.02; done`
    const created = await ticking.gateway().send('POST', '/v1/processes', JSON.stringify({ shell }), { 'content-type': 'application/json' })
    assert.equal(created.status, 201)
    return ticking
  }

  gateway(url = this.#url): GatewayClient {
    this.#gateway?.close()
    this.#gateway = new GatewayClient(url, this.sandbox, 1)
    return this.#gateway
  }

  async ticks(url?: string): Promise<number> {
    return Number((await this.gateway(url).run(`cat /tmp/ticks-${this.sandbox}`)).stdout)
  }

  async goesOn(url?: string): Promise<void> {
    const first = await until('a program that answers', () => this.ticks(url).catch(() => undefined), RENEWAL_MS * 4)
    await until('a tick', async () => ((await this.ticks(url)) > first ? true : undefined))
  }

  async end(host: string): Promise<void> {
    this.#gateway?.close()
    this.installation.plane.sendEnd({ sandbox: this.sandbox, upto: 2, host })
    await this.installation.plane.untilReported('ended', this.sandbox, ({ upto }) => upto === 2)
  }
}

describe('an outage', () => {
  let installation: Installation
  let agent: Agent
  before(async () => {
    installation = await short()
    agent = await installation.startAgent()
  })
  after(() => installation[Symbol.asyncDispose]())

  for (const driver of DRIVERS) {
    test(`everything of ${driver} is inside of the gate`, async () => {
      const ticking = await Ticking.start(installation, agent.hostId, agent.dataPlaneUrl, driver)
      const inside = new Set(cgroupPids({ version: 2, hierarchies: [groupOf(installation)] }, 'sandglass-gate'))
      const own = listProcesses((argv) => argv.some((argument) => argument.includes(ticking.sandbox)))
      assert.ok(own.length > 0)
      assert.deepEqual(
        own.filter(({ pid }) => !inside.has(pid) && pid !== process.pid).map(({ argv }) => argv.join(' ')),
        [],
      )
      await ticking.end(agent.hostId)
    })

    test(`that is longer than the lease freezes ${driver}, is told at once, and what stood still goes on after it`, async () => {
      const { plane } = installation
      const ticking = await Ticking.start(installation, agent.hostId, agent.dataPlaneUrl, driver)
      await ticking.goesOn()
      plane.outage = true
      const began = performance.now()
      await untilFrozen(installation, true)
      const tookMs = performance.now() - began
      assert.ok(tookMs < RENEWAL_MS + PROMPT_MS, `frozen after ${tookMs} ms`)
      const asked = performance.now()
      const answer = await ticking.gateway().send('GET', '/v1/health')
      assert.equal(answer.status, 503)
      const { code, detail } = JSON.parse(answer.body.toString('utf8'))
      assert.equal(code, 'unavailable')
      assert.match(detail, /^The lease of this sandbox’s host has run out/)
      assert.ok(performance.now() - asked < CLEAR_MS)
      plane.outage = false
      await untilFrozen(installation, false)
      await ticking.goesOn()
      assert.deepEqual(plane.reported('ended', ticking.sandbox), [], 'nothing was ended')
      await plane.untilWatching()
      await ticking.end(agent.hostId)
    })
  }

  test('that is shorter than the lease freezes nothing', async () => {
    const { plane } = installation
    await until('a renewal', () => (agent.leaseLeftMs() > RENEWAL_MS - RENEW_PERIOD_MS ? true : undefined))
    const lines = readFileSync(agent.layout.wardenLog, 'utf8')
    plane.renewalsLost = true
    await until('half of it', () => (agent.leaseLeftMs() < RENEWAL_MS / 3 ? true : undefined))
    plane.renewalsLost = false
    await until('a renewal', () => (agent.leaseLeftMs() > RENEWAL_MS / 2 ? true : undefined))
    assert.equal(readFileSync(agent.layout.wardenLog, 'utf8'), lines)
  })

  test('in which orders still come starts nothing (ticket.lease)', async () => {
    const { plane } = installation
    plane.renewalsLost = true
    await untilFrozen(installation, true)
    const sandbox = newSandbox()
    const { ticket, spec } = plane.ticket(await specOf(sandbox, { driver: 'fake' }), { generation: 1, host: agent.hostId })
    plane.sendStart(ticket, spec)
    assert.equal((await plane.untilReported('refused', sandbox)).code, 'unavailable')
    plane.renewalsLost = false
    await untilFrozen(installation, false)
  })

  test('ends what is ordered to end, also while it stands still', async () => {
    const { plane } = installation
    const all = await Promise.all(DRIVERS.map((driver) => Ticking.start(installation, agent.hostId, agent.dataPlaneUrl, driver)))
    plane.renewalsLost = true
    await untilFrozen(installation, true)
    await Promise.all(all.map((ticking) => ticking.end(agent.hostId)))
    assert.ok(isFrozen(installation))
    assert.equal(await agent.census(), 0)
    plane.renewalsLost = false
    await untilFrozen(installation, false)
  })
})

describe('a refusal', () => {
  let installation: Installation
  let agent: Agent
  before(async () => {
    installation = await short()
    agent = await installation.startAgent()
  })
  after(() => installation[Symbol.asyncDispose]())

  for (const [what, told] of [
    ['tells no epoch', undefined],
    ['tells an earlier epoch', 0],
  ] as const) {
    test(`that ${what} ends nothing: the warden stops what runs, and it goes on when renewals are answered again`, async () => {
      const { plane } = installation
      const ticking = await Ticking.start(installation, agent.hostId, agent.dataPlaneUrl, 'fake')
      const { epoch } = plane
      plane.refusal = told === undefined ? {} : { told }
      await untilFrozen(installation, true)
      plane.refusal = undefined
      await untilFrozen(installation, false)
      await ticking.goesOn()
      assert.equal(plane.epoch, epoch)
      assert.deepEqual(plane.reported('ended', ticking.sandbox), [])
      await ticking.end(agent.hostId)
    })

    test(`of a registration that ${what} ends nothing either`, async () => {
      const { plane } = installation
      const ticking = await Ticking.start(installation, agent.hostId, agent.dataPlaneUrl, 'fake')
      await installation.stopAgent(agent)
      plane.refusal = told === undefined ? {} : { told }
      const { epoch } = plane
      const asked = plane.registrations.length
      const starting = installation.startAgent()
      await until('three refusals', () => (plane.registrations.length > asked + 3 ? true : undefined))
      plane.refusal = undefined
      agent = await starting
      await ticking.goesOn(agent.dataPlaneUrl)
      assert.equal(plane.epoch, epoch)
      await ticking.end(agent.hostId)
    })
  }

  test('that tells a later epoch ends everything, also what stands still, and the next epoch begins with nothing', async () => {
    const { plane } = installation
    const all = await Promise.all(DRIVERS.map((driver) => Ticking.start(installation, agent.hostId, agent.dataPlaneUrl, driver)))
    const { epoch } = plane
    plane.outage = true
    await untilFrozen(installation, true)
    plane.fence()
    const told = plane.reports.length
    plane.outage = false
    for (const { sandbox } of all) assert.equal((await plane.untilReported('ended', sandbox)).reason, 'recovered')
    assert.equal(plane.registrations.at(-1)?.expected_epoch, epoch + 1, 'it asks for the one behind the told one')
    assert.equal(plane.epoch, epoch + 2)
    // guard: register.empty. By the time it asked, nothing ran.
    assert.deepEqual(
      plane.reports.slice(told).filter(({ type }) => type !== 'ended'),
      [],
      'nothing of the old epoch is told but ends',
    )
    await plane.untilWatching()
    await untilFrozen(installation, false)
    const next = await Ticking.start(installation, agent.hostId, agent.dataPlaneUrl, 'fake')
    await next.end(agent.hostId)
  })
})

describe('the warden is apart from the agent (warden.apart)', () => {
  let installation: Installation
  let agent: MortalAgent
  let child: ChildProcess
  before(async () => {
    installation = await short()
    agent = new MortalAgent(installation)
    await agent.start()
    child = agent.process()
  })
  after(() => installation[Symbol.asyncDispose]())

  const announced = (): { host_id: string; data_plane_url: string } => JSON.parse(readFileSync(join(installation.dir, 'host/agent.json'), 'utf8'))

  for (const driver of DRIVERS) {
    test(`a stopped agent: ${driver} stands still by the deadline, and goes on when the agent does`, async () => {
      const { host_id, data_plane_url } = announced()
      const ticking = await Ticking.start(installation, host_id, data_plane_url, driver)
      await ticking.goesOn()
      child.kill('SIGSTOP')
      const began = performance.now()
      await untilFrozen(installation, true)
      assert.ok(performance.now() - began < RENEWAL_MS + PROMPT_MS)
      child.kill('SIGCONT')
      await untilFrozen(installation, false)
      await ticking.goesOn()
      await ticking.end(host_id)
    })
  }

  test('a stopped agent that is told of a later epoch destroys what it lost', async () => {
    const { plane } = installation
    const { host_id, data_plane_url } = announced()
    const ticking = await Ticking.start(installation, host_id, data_plane_url, 'gvisor')
    child.kill('SIGSTOP')
    await untilFrozen(installation, true)
    plane.fence()
    child.kill('SIGCONT')
    assert.equal((await plane.untilReported('ended', ticking.sandbox)).reason, 'recovered')
    await plane.untilWatching()
  })

  test('a killed agent: what it left stands still by the old deadline, which a new agent does not move before it is answered (restart.deadline)', async () => {
    const { plane } = installation
    const { host_id, data_plane_url } = announced()
    const ticking = await Ticking.start(installation, host_id, data_plane_url, 'gvisor')
    await ticking.goesOn()
    plane.outage = true
    child.kill('SIGKILL')
    const began = performance.now()
    const again = new MortalAgent(installation)
    await again.start(undefined, false)
    child = again.process()
    await untilFrozen(installation, true)
    assert.ok(performance.now() - began < RENEWAL_MS + PROMPT_MS)
    plane.outage = false
    await untilFrozen(installation, false)
    await plane.untilWatching()
    await until('the new address', () => (announced().data_plane_url === data_plane_url ? undefined : true))
    await ticking.goesOn(announced().data_plane_url)
    await ticking.end(host_id)
  })

  for (const name of ['SIGKILL', 'SIGSTOP'] as const) {
    test(`a warden that gets ${name} is replaced, and the deadline stays`, async () => {
      const first = wardenPid(installation)
      assert.ok(first !== undefined)
      const { renewals } = installation.plane
      sendSignal(first, name)
      const second = await until('another warden', () => {
        const pid = wardenPid(installation)
        return pid === undefined || pid === first ? undefined : pid
      })
      assert.notEqual(second, first)
      await until('renewals', () => (installation.plane.renewals > renewals + 2 ? true : undefined))
      await untilFrozen(installation, false)
      installation.plane.renewalsLost = true
      await untilFrozen(installation, true)
      installation.plane.renewalsLost = false
      await untilFrozen(installation, false)
    })
  }
})

test('guard launch.gate: a launch that the deadline overtakes is held at the gate, and what it would have become never runs', async () => {
  await using installation = await short()
  const agent = await installation.startAgent()
  installation.plane.renewalsLost = true
  await untilFrozen(installation, true)
  const marker = join(installation.dir, 'launched')
  const procs = join(groupOf(installation), 'sandglass-gate/cgroup.procs')
  const launch = spawn(installation.configuration.warden, ['become', dirname(procs), 'touch', marker], { stdio: 'ignore' })
  await until('the launch at the gate', () => (readFileSync(procs, 'utf8').includes(`${launch.pid}`) ? true : undefined))
  assert.equal(existsSync(marker), false)
  installation.plane.renewalsLost = false
  await until('the launch', () => (existsSync(marker) ? true : undefined))
  await installation.stopAgent(agent)
})

test('after everything is ended no warden is left, nor anything that it kept', async () => {
  const installation = await short()
  await installation.startAgent()
  await until('a warden', () => wardenPid(installation))
  await installation[Symbol.asyncDispose]()
  assert.equal(wardenPid(installation), undefined)
  assert.equal(existsSync(runDir(installation)), false)
  assert.equal(existsSync(groupOf(installation)), false)
})

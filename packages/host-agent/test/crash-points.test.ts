/**
 * The agent is killed at every named point of starting, stopping, recovering and registering, then started again: what ran lives on, what
 * was in flight is gone and told, and an independent look at the machine finds exactly what should be there.
 */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { differences, inventory } from '../../../tests/failure/leftovers.ts'
import { destroyAll } from '../src/destroy-all.ts'
import { CRASH_POINTS, type CrashPoint } from '../src/faults/crash-point.ts'
import { GatewayClient } from './support/gateway-client.ts'
import { Installation, newSandbox, specOf, testWorld } from './support/installation.ts'
import { MortalAgent } from './support/mortal-agent.ts'
import { until } from './support/until.ts'

let installation: Installation
let hostId: string
let agent: MortalAgent

before(async () => {
  installation = await Installation.create()
  agent = new MortalAgent(installation)
  await agent.start()
  hostId = installation.plane.registrations[0]?.host_id ?? ''
})
after(() => installation[Symbol.asyncDispose]())

async function sendStart(sandbox: string): Promise<void> {
  const { ticket, spec } = installation.plane.ticket(await specOf(sandbox), { generation: 1, host: hostId })
  installation.plane.sendStart(ticket, spec)
}

/** Exactly these are alive, and nothing else of this installation exists. */
async function assertOnMachine(live: readonly string[]): Promise<void> {
  let lines: string[] = []
  const look = (): true | undefined => {
    lines = differences(inventory({ home: installation.dir, name: installation.installation }), new Set(live))
    return lines.length === 0 ? true : undefined
  }
  await until('the machine to be as it should', look, 20_000).catch(() => assert.deepEqual(lines, []))
}

async function assertWorks(sandbox: string): Promise<void> {
  const url = installation.plane.registrations.at(-1)?.data_plane_url ?? ''
  const gateway = new GatewayClient(url, sandbox, 1)
  assert.equal((await gateway.run('echo $((6*7))')).stdout, '42\n')
  gateway.close()
}

async function end(sandbox: string): Promise<void> {
  installation.plane.sendEnd({ sandbox, upto: 2, host: hostId })
  await installation.plane.untilReported('ended', sandbox, ({ upto }) => upto === 2)
  await assertOnMachine([])
}

/** Before this point the intent is not durable: nothing of the start may be remembered. */
const FORGETS: readonly CrashPoint[] = ['start.decided']
/** From this point on the sandbox is running: it must be adopted. */
const ADOPTS: readonly CrashPoint[] = ['start.ready_recorded', 'start.reported']

for (const point of CRASH_POINTS.filter((name) => name.startsWith('start.'))) {
  test(`killed at ${point}`, async () => {
    const sandbox = newSandbox()
    await agent.kill()
    await agent.start(point)
    await sendStart(sandbox)
    await agent.untilKilled()
    const reports = installation.plane.reports.length
    await agent.start()
    if (ADOPTS.includes(point)) {
      await until('ready again', () =>
        installation.plane.reports.slice(reports).some((report) => report.type === 'ready' && report.sandbox === sandbox) ? true : undefined,
      )
      await assertOnMachine([sandbox])
      await assertWorks(sandbox)
    } else if (FORGETS.includes(point)) {
      await assertOnMachine([])
    } else {
      const ended = await installation.plane.untilReported('ended', sandbox)
      assert.deepEqual([ended.upto, ended.reason], [1, 'recovered'])
      assert.deepEqual(installation.plane.reported('ready', sandbox), [])
      await assertOnMachine([])
    }
    await end(sandbox)
  })
}

for (const point of CRASH_POINTS.filter((name) => name.startsWith('stop.'))) {
  test(`killed at ${point}`, async () => {
    const sandbox = newSandbox()
    await agent.kill()
    await agent.start(point)
    await sendStart(sandbox)
    await installation.plane.untilReported('ready', sandbox)
    installation.plane.sendEnd({ sandbox, upto: 2, host: hostId })
    await agent.untilKilled()
    await agent.start()
    await installation.plane.untilReported('ended', sandbox, ({ upto }) => upto === 2)
    await assertOnMachine([])
  })
}

for (const point of ['recover.planned', 'adopt.channel', 'host.asking', 'host.registered'] as const satisfies CrashPoint[]) {
  test(`killed at ${point} with a sandbox running`, async () => {
    const sandbox = newSandbox()
    await sendStart(sandbox)
    await installation.plane.untilReported('ready', sandbox)
    await agent.kill()
    await agent.start(point, false)
    await agent.untilKilled()
    const { epoch } = installation.plane
    await agent.start()
    assert.equal(installation.plane.epoch, epoch, 'the same boot resumes its epoch')
    await assertOnMachine([sandbox])
    await assertWorks(sandbox)
    await end(sandbox)
  })
}

test('every crash point is in this suite, or in that of pools', () => {
  const tested = CRASH_POINTS.filter(
    (name) => /^(start|stop|pool)\./.test(name) || ['recover.planned', 'adopt.channel', 'host.asking', 'host.registered'].includes(name),
  )
  assert.deepEqual(tested, [...CRASH_POINTS])
})

test('destroy-all ends everything without a control plane and leaves nothing on the machine', async () => {
  const sandboxes = [newSandbox(), newSandbox()]
  for (const sandbox of sandboxes) await sendStart(sandbox)
  for (const sandbox of sandboxes) await installation.plane.untilReported('ready', sandbox)
  await agent.kill()
  assert.equal(await destroyAll(installation.configuration, testWorld), 2)
  const left = inventory({ home: installation.dir, name: installation.installation }).filter((thing) => thing.kind !== 'record' && thing.kind !== 'file')
  assert.deepEqual(left, [])
})

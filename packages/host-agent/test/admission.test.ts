/** How many starts a live agent takes on at once, and what it refuses for want of room. */
import assert from 'node:assert/strict'
import { readdir } from 'node:fs/promises'
import { after, before, test } from 'node:test'
import { LIMITS } from '@sandglass/contract'
import type { Agent } from '../src/agent.ts'
import { Installation, newSandbox, specOf, testWorld } from './support/installation.ts'
import { until } from './support/until.ts'

let installation: Installation
let agent: Agent
const room = { ...testWorld.room }

before(async () => {
  installation = await Installation.create({ SANDGLASS_CAPACITY_DISK_GB: '100', SANDGLASS_CAPACITY_MEMORY_MB: '100000' })
  agent = await installation.startAgent({ ...testWorld, room })
})
after(() => installation[Symbol.asyncDispose]())

async function sendStart(script: object): Promise<string> {
  const sandbox = newSandbox()
  const spec = await specOf(sandbox, { driver: 'fake', env: { SANDGLASS_FAKE_SCRIPT: JSON.stringify(script) } })
  const order = installation.plane.ticket(spec, { generation: 1, host: agent.hostId })
  installation.plane.sendStart(order.ticket, order.spec)
  return sandbox
}

/** A launch has made its directory before it begins, and has it until it is taken down. */
const inFlight = async (): Promise<string[]> => (await readdir(agent.layout.runtimes)).map((name) => name.replace(/-g1$/, ''))

test('so many starts are in flight and no more; the next in line begins when one of them is over', async () => {
  const { plane } = installation
  const waiting = 3
  const sandboxes: string[] = []
  for (let index = 0; index < LIMITS.hostStartsInFlight + waiting; index += 1) sandboxes.push(await sendStart({ launch_delay_ms: 600_000 }))
  const first = sandboxes.slice(0, LIMITS.hostStartsInFlight)
  await until('the first to begin', async () => ((await inFlight()).length >= first.length ? true : undefined))
  await plane.barrier(newSandbox(), agent.hostId)
  assert.deepEqual((await inFlight()).sort(), first.toSorted())

  const [over = '', ...others] = first
  plane.sendEnd({ sandbox: over, upto: 2, host: agent.hostId })
  await plane.untilReported('ended', over)
  const [next = ''] = sandboxes.slice(first.length)
  await until('the next to begin', async () => ((await inFlight()).includes(next) ? true : undefined))
  await plane.barrier(newSandbox(), agent.hostId)
  assert.deepEqual((await inFlight()).sort(), [...others, next].sort())

  // Those in line are ended too, and never begin.
  const rest = sandboxes.filter((sandbox) => sandbox !== over).toReversed()
  for (const sandbox of rest) plane.sendEnd({ sandbox, upto: 2, host: agent.hostId })
  for (const sandbox of rest) assert.equal((await plane.untilReported('ended', sandbox)).reason, 'ordered')
  assert.deepEqual(await inFlight(), [])
  assert.deepEqual(
    plane.reports.filter(({ type }) => type !== 'ended'),
    [],
  )
})

for (const [what, least, shrink] of [
  ['disk', LIMITS.hostFreeDiskMbFloor, (mb: number) => Object.assign(room, { freeDiskMb: async () => mb })],
  ['memory', LIMITS.hostFreeMemoryMbFloor, (mb: number) => Object.assign(room, { freeMemoryMb: () => mb })],
] as const) {
  test(`below the least free ${what} a start is refused, and what runs goes on; at it the next one is taken`, async () => {
    const { plane } = installation
    Object.assign(room, { freeDiskMb: async () => LIMITS.hostFreeDiskMbFloor, freeMemoryMb: () => LIMITS.hostFreeMemoryMbFloor })
    const runs = await sendStart({})
    await plane.untilReported('ready', runs)
    shrink(least - 1)
    const refused = await sendStart({})
    const { code, detail } = await plane.untilReported('refused', refused)
    assert.equal(code, 'unschedulable')
    assert.match(detail, new RegExp(`${least - 1} MiB of ${what} left`))
    assert.deepEqual(await inFlight(), [runs])
    shrink(least)
    const taken = await sendStart({})
    await plane.untilReported('ready', taken)
    for (const sandbox of [runs, taken]) {
      plane.sendEnd({ sandbox, upto: 2, host: agent.hostId })
      await plane.untilReported('ended', sandbox)
    }
  })
}

/**
 * What a gVisor pool member is before it is anybody's, and after: names of its own, and never a right that a tenant may not have.
 *
 * The steps are those of pools, taken one by one, because nothing outside can run a command in a member that nobody has claimed.
 */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { after, before, test } from 'node:test'
import { DEFAULT_RESOURCES, GuestFrameDecoder, newPoolMemberId, type RuntimeSpec } from '@sandglass/contract'
import { memberName } from '../src/domain/runtime-name.ts'
import { installGuestAgent } from '../src/guest/guest-agent-file.ts'
import { type BootedRuntime, bootRuntime } from '../src/lifecycle/boot-runtime.ts'
import { identifyRuntime } from '../src/lifecycle/identify-runtime.ts'
import type { LifecycleWorld } from '../src/lifecycle/lifecycle-world.ts'
import { stopwatch } from '../src/lifecycle/stopwatch.ts'
import { machineOf } from '../src/machine.ts'
import { openGate } from '../src/warden/warden.ts'
import { baseTemplate, Installation, newSandbox, specOf, testWorld } from './support/installation.ts'

const CAP_SYS_ADMIN = 1n << 21n
/** Thread or process, then its sets of capabilities, one line each. */
const RIGHTS_OF_AGENT = 'for task in /proc/1/task/*; do echo $(cat $task/comm; grep ^Cap $task/status); done'
const RIGHTS_OF_COMMAND = 'echo $(echo command; grep ^Cap /proc/self/status)'
const PIDS_MAX = 64

let installation: Installation
let world: LifecycleWorld

before(async () => {
  installation = await Installation.create()
  world = (await machineOf(installation.configuration, testWorld, installGuestAgent, () => openGate)).lifecycle
  await world.templates.refresh()
})
after(() => installation[Symbol.asyncDispose]())

async function member(): Promise<BootedRuntime> {
  const name = memberName(newPoolMemberId(randomBytes))
  const spec = { driver: 'gvisor' as const, template: await baseTemplate(), resources: DEFAULT_RESOURCES, pids_max: PIDS_MAX, hostname: name, env: {} }
  return bootRuntime(world, { name, epoch: 1, owner: null, spec, yields: false, onLost: () => {} }, AbortSignal.timeout(30_000))
}

async function claim(booted: BootedRuntime, spec: RuntimeSpec): Promise<void> {
  booted.giveTo({ sandbox: spec.sandbox, generation: 1 }, () => {})
  await identifyRuntime(world, booted, { spec, generation: 1, watch: stopwatch(() => world.clock.nowMs()) }, AbortSignal.timeout(10_000))
}

async function run({ channel }: BootedRuntime, shell: string): Promise<string> {
  const { status, body } = await channel.session().exchange('POST', '/v1/exec', { shell })
  assert.equal(status, 200, body.toString('utf8'))
  let output = ''
  for (const frame of new GuestFrameDecoder().push(body)) if (frame.stream === 'stdout') output += Buffer.from(frame.bytes).toString('utf8')
  return output
}

/** Names of those who hold the right in any set. */
function holders(listing: string): string[] {
  const lines = listing.trim().split('\n')
  assert.ok(
    lines.every((line) => line.split(' ').length === 11),
    listing,
  )
  return lines
    .filter((line) => [...line.matchAll(/: ([0-9a-f]+)/g)].some(([, set]) => (BigInt(`0x${set}`) & CAP_SYS_ADMIN) !== 0n))
    .map((line) => line.split(' ')[0] ?? '')
}

test('a member is named at its claim, shares nothing with another, and no command ever has the right to name it', async () => {
  const [one, other] = await Promise.all([member(), member()])
  try {
    // Only the thread that waits for the name, which runs nothing.
    assert.deepEqual(holders(await run(one, RIGHTS_OF_AGENT)), ['herald'])
    assert.deepEqual(holders(await run(one, RIGHTS_OF_COMMAND)), [])
    assert.equal(await run(one, 'hostname stolen 2>/dev/null; hostname'), `${one.name}\n`)

    const spec = await specOf(newSandbox(), { hostname: 'box-1', pids_max: PIDS_MAX })
    await claim(one, spec)
    await claim(other, await specOf(newSandbox(), { hostname: 'box-2', pids_max: PIDS_MAX }))
    assert.deepEqual(holders(await run(one, RIGHTS_OF_AGENT)), [])
    assert.deepEqual(holders(await run(one, RIGHTS_OF_COMMAND)), [])
    assert.equal(
      await run(one, 'hostname stolen 2>/dev/null; hostname; cat /etc/hostname; getent hosts $(hostname) | grep -o "127.*box-1" | tr -s " "'),
      'box-1\nbox-1\n127.0.1.1 box-1\n',
    )
    assert.equal(await run(other, 'hostname'), 'box-2\n')
    assert.equal(await run(one, 'cat /sys/fs/cgroup$(sed s/0::// /proc/1/cgroup)/pids.max'), `${PIDS_MAX}\n`)

    const ids = 'cat /etc/machine-id /proc/sys/kernel/random/boot_id'
    const [own, others] = await Promise.all([run(one, ids), run(other, ids)])
    assert.match(own, /^[0-9a-f]{32}\n[0-9a-f-]{36}\n$/)
    const shared = own.split('\n').filter((id) => id !== '' && others.includes(id))
    assert.deepEqual(shared, [], 'no id is that of another sandbox')
  } finally {
    await Promise.all([one, other].map(({ channel }) => channel.close()))
  }
})

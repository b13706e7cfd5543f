/** In which order a worker ends things, makes that durable and tells it. The host is a script. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { EndOrder } from '@sandglass/contract'
import { watchExits } from '../src/reconcile/exit-watch.ts'
import { SandboxWorker } from '../src/reconcile/sandbox-worker.ts'
import { SandboxWorkers } from '../src/reconcile/sandbox-workers.ts'
import { HOST, recordIn, SANDBOX, spec, TERM, ticketOf } from './domain/builders.ts'
import { ScriptedHost } from './support/scripted-host.ts'
import { until } from './support/until.ts'

const endOrder = (upto: number): EndOrder => ({ kind: 'end', sandbox: SANDBOX, upto, host: HOST, term: TERM, pool: null })
const startOrder = { ticket: ticketOf(), spec, traceparent: undefined, heardAtMs: 0 }

const untilHappened = (host: ScriptedHost, what: string): Promise<true> => until(what, () => (host.happened.includes(what) ? true : undefined))

test('the end of a sandbox that was never here is told once its mark is on disk (end.durable)', async () => {
  const host = new ScriptedHost()
  new SandboxWorker(host.world, SANDBOX, undefined).takeEnd(endOrder(6))
  await untilHappened(host, 'write gone 6 settled')
  assert.deepEqual(host.happened, ['write gone 6', 'ended 6 ordered', 'write gone 6 settled'])
})

test('a mark that cannot be written is not told until it is (end.durable)', async () => {
  const host = new ScriptedHost()
  host.failures.add('write gone 6')
  new SandboxWorker(host.world, SANDBOX, undefined).takeEnd(endOrder(6))
  await untilHappened(host, 'write gone 6 settled')
  assert.deepEqual(host.happened, ['write gone 6 fails', 'write gone 6', 'ended 6 ordered', 'write gone 6 settled'])
})

test('a runtime is ended once the mark is on disk, and its end is told once nothing is left and that is on disk (end.durable, end.kill)', async () => {
  const host = new ScriptedHost()
  new SandboxWorker(host.world, SANDBOX, recordIn('running')).takeEnd(endOrder(6))
  await untilHappened(host, 'write gone 6 settled')
  assert.deepEqual(host.happened, ['write ending 6', 'kill', 'clean', 'network', 'write gone 6', 'ended 6 ordered', 'write gone 6 settled'])
})

for (const step of ['kill', 'clean', 'network', 'write gone 6']) {
  test(`an end whose step "${step}" fails is not told until it works (end.kill)`, async () => {
    const host = new ScriptedHost()
    host.failures.add(step)
    new SandboxWorker(host.world, SANDBOX, recordIn('running')).takeEnd(endOrder(6))
    await untilHappened(host, 'write gone 6 settled')
    const again = ['kill', 'clean', 'network', 'write gone 6']
    const first = [...again.slice(0, again.indexOf(step)), `${step} fails`]
    assert.deepEqual(host.happened, ['write ending 6', ...first, ...again, 'ended 6 ordered', 'write gone 6 settled'])
  })
}

test('an end below a start in flight lets it go on; one that covers it stops it (end.gen)', async () => {
  for (const [upto, expected] of [
    [4, ['refused 5', 'write gone 4', 'ended 4 ordered']],
    [5, ['write gone 5', 'ended 5 ordered']],
  ] as const) {
    const host = new ScriptedHost()
    const giveBack = await host.starts.take()
    const worker = new SandboxWorker(host.world, SANDBOX, undefined)
    worker.takeStart(startOrder)
    worker.takeEnd(endOrder(upto))
    if (upto === 4) giveBack()
    await untilHappened(host, `write gone ${upto} settled`)
    assert.deepEqual(host.happened.slice(0, -1), expected)
  }
})

test('a runtime whose process is gone is noticed without its channel, and ended', async () => {
  const host = new ScriptedHost()
  const workers = new SandboxWorkers(host.world)
  workers.load([recordIn('running')], [])
  const watching = new AbortController()
  const watch = watchExits(workers, { lookForDead: () => {} }, host.lifecycle, host.clock, watching.signal)
  try {
    for (let turn = 0; turn < 5; turn += 1) await host.clock.wait(0)
    assert.deepEqual(host.happened, [], 'what is alive is left alone')
    host.alive = false
    await untilHappened(host, 'ended 5 runtime_exited')
  } finally {
    watching.abort(new Error('the test is over'))
  }
  await assert.rejects(watch, /the test is over/)
})

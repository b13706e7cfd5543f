import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CLOSE_CODE, LIMITS } from '@sandglass/contract'
import { Bench } from './peers/bench.ts'
import { readEvents } from './peers/events.ts'

test('a gateway that stops tells sessions to come back, finishes short requests, and lets processes live', async () => {
  await using bench = await Bench.withGuest()
  const session = await bench.connect('/exec')
  session.begin({ type: 'start', process: { argv: ['sleep', '30'], key: 'lives' }, credit_bytes: 0 })
  await session.status('started')
  const events = readEvents(await bench.post('/exec', { argv: ['sleep', '30'] }, { accept: 'text/event-stream' }))
  await events.next()
  const short = bench.post('/exec', { argv: ['sh', '-c', 'sleep 0.5; echo finished'] })
  const started = performance.now()
  const asked = bench.host.requests.length
  while (bench.host.requests.length === asked) await new Promise((resolve) => setImmediate(resolve))
  const closing = bench.gateway.close()
  assert.equal((await session.closed).code, CLOSE_CODE.goingAway)
  const last = await events.next()
  assert.deepEqual([last.value?.type, last.value?.data['code']], ['error', 'unavailable'])
  const response = await short
  assert.equal(response.status, 200)
  assert.match(await response.text(), /finished/)
  await closing
  assert.ok(performance.now() - started < LIMITS.gatewayDrainMs + 2_000)
  await assert.rejects(bench.ask('/processes'))
  const request = (await bench.guest?.session())?.request({ ':path': '/v1/processes/key:lives' })
  let body = ''
  for await (const chunk of request ?? []) body += chunk
  assert.equal(JSON.parse(body).state, 'running')
})

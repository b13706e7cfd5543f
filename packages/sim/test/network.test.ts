/** Streams of the simulated network end as those of a real one do: whoever writes to one that nobody reads is told so. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Actor } from '../src/kernel/actor.ts'
import { Clockwork } from '../src/kernel/clockwork.ts'
import { World } from '../src/kernel/world.ts'
import { Network, type Served } from '../src/network/network.ts'
import type { StreamListener } from '../src/replica/replica.ts'

const WATCH = { method: 'GET', url: '/internal/v1/hosts/h/watch?epoch=1', headers: {} } as const

/** A control plane that is asked for watches only. */
function served() {
  const seen: { listener: StreamListener | undefined; closed: boolean } = { listener: undefined, closed: false }
  const replica: Served = {
    name: 'cp-1',
    listens: true,
    handle: (_, answered) => answered(undefined),
    stream: (_, listener) => {
      seen.listener = listener
      listener.begin(200)
      return () => {
        seen.closed = true
      }
    },
  }
  return { seen, replica }
}

function hostOf(world: World) {
  return { end: 'host-1', actor: new Actor(world, 'host-1', new Clockwork(1, 0)) }
}

test('a watch that was given up before it was opened is closed', async () => {
  const world = new World(1)
  const { seen, replica } = served()
  const network = new Network(world, [replica])
  const moved = new AbortController()
  const asked = network.send(hostOf(world), WATCH, moved.signal, replica)
  moved.abort(new Error('another replica answers'))
  await assert.rejects(asked, /another replica answers/)
  await world.runUntil(100)
  assert.notEqual(seen.listener, undefined, 'the request arrives all the same')
  assert.equal(seen.closed, true)
  assert.equal(network.tellAgain('host-1'), false)
})

test('a watch that is read is told in order, and closed when it is given up', async () => {
  const world = new World(1)
  const { seen, replica } = served()
  const moved = new AbortController()
  const asked = new Network(world, [replica]).send(hostOf(world), WATCH, moved.signal, replica)
  await world.runUntil(100)
  const stream = await asked
  for (const line of ['one', 'two', 'three']) seen.listener?.data(Buffer.from(line))
  await world.runUntil(200)
  moved.abort(new Error('done'))
  const heard: string[] = []
  await assert.rejects(async () => {
    for await (const chunk of stream) heard.push(Buffer.from(chunk).toString('utf8'))
  }, /done/)
  assert.deepEqual(heard, ['one', 'two', 'three'])
  await world.runUntil(300)
  assert.equal(seen.closed, true)
})

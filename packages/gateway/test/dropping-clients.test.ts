/** Clients that drop at any moment: nothing is left of them, and everybody else goes on. */
import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { Bench, SANDBOX } from './peers/bench.ts'

const ROUNDS = 40

function randomOf(seed: number): (below: number) => number {
  let state = seed
  return (below) => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648
    return Math.floor((state / 2_147_483_648) * below)
  }
}

const json = (body: unknown) => {
  const text = JSON.stringify(body)
  return `content-type: application/json\r\ncontent-length: ${text.length}\r\n\r\n${text}`
}

/** Heads and the beginnings of bodies. */
function requests(directory: string): string[] {
  return [
    `POST /exec HTTP/1.1\r\n${json({ argv: ['sh', '-c', 'sleep 0.05; head -c 300000 /dev/zero'] })}`,
    `POST /exec HTTP/1.1\r\naccept: text/event-stream\r\n${json({ argv: ['sh', '-c', 'for i in 1 2 3 4 5; do echo $i; sleep 0.02; done'] })}`,
    `POST /exec HTTP/1.1\r\n${json({ argv: ['cat'], stdin: 'x'.repeat(200_000) })}`,
    `PUT /files?path=${directory}/dropped HTTP/1.1\r\ncontent-length: 500000\r\n\r\n${'x'.repeat(100_000)}`,
    `PUT /files/archive?path=${directory}/unpacked HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n`,
    'GET /files?path=/usr/bin/env HTTP/1.1\r\n\r\n',
    'GET /files/archive?path=/etc HTTP/1.1\r\n\r\n',
    `GET /files/watch?path=${directory} HTTP/1.1\r\n\r\n`,
    'GET /processes HTTP/1.1\r\n\r\n',
    'GET /exec HTTP/1.1\r\nconnection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\nsec-websocket-protocol: sandglass.v1\r\n\r\n',
  ]
}

function metricOf(text: string, name: string): number {
  return Number(new RegExp(`^sandglass_gateway_${name} ([0-9]+)$`, 'm').exec(text)?.[1])
}

test('seeded: sessions, budgets and temporary files of dropped clients are given back', async () => {
  await using bench = await Bench.withGuest()
  const directory = bench.guest?.directory ?? ''
  const port = Number(new URL(bench.url).port)
  const random = randomOf(11)
  const all = requests(directory)
  for (let round = 0; round < ROUNDS; round += 1) {
    await Promise.all(
      all.map(async (request) => {
        const [line = '', ...rest] = request.split('\r\n')
        const target = line.replace(' /', ` /v1/sandboxes/${SANDBOX}/`)
        const socket = connect(port, '127.0.0.1')
        socket.on('error', () => undefined)
        if (random(2) === 0) socket.resume()
        socket.write(`${target}\r\nhost: x\r\nauthorization: Bearer ${bench.key.text}\r\n${rest.join('\r\n')}`)
        await delay(random(60))
        if (random(2) === 0) socket.destroy()
        else socket.resetAndDestroy()
      }),
    )
  }
  const deadline = Date.now() + 30_000
  for (;;) {
    const metrics = await (await fetch(`${bench.url}/metrics`)).text()
    if (metricOf(metrics, 'sessions') === 0 && metricOf(metrics, 'buffered_bytes') === 0) break
    assert.ok(Date.now() < deadline, metrics)
    await delay(50)
  }
  const listed = await (await bench.ask(`/files/list?path=${directory}`)).text()
  assert.ok(!listed.includes('dropped') && !listed.includes('.sandglass-'), listed)
  const response = await bench.post('/exec', { argv: ['echo', 'fine'] })
  assert.match(await response.text(), /fine/)
})

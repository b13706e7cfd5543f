/** Malformed frames on the gateway's WebSockets: a named error and a close code of ours; nothing is started, nothing else suffers. */
import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { after, before, describe, test } from 'node:test'
import { CHANNEL, CLOSE_CODE, LIMITS } from '@sandglass/contract'
import { Sandbox } from '@sandglass/sdk'
import { until, within } from '../bounds.ts'
import { afterTests, sharedInstallation } from '../file-installation.ts'
import type { Installation } from '../installation.ts'
import { assertCostNothing, type Costs, costsOf } from './costs.ts'
import { HandSocket } from './socket.ts'

let installation: Installation
let sandbox: Sandbox
before(async () => {
  installation = await sharedInstallation()
  sandbox = await Sandbox.create({ client: installation.client(), ttlSeconds: 900 })
})
afterTests(() => sandbox?.delete())

const open = (path = '/exec', protocols?: string[]): HandSocket =>
  new HandSocket(`${sandbox.resource.gateway_url}/v1/sandboxes/${sandbox.id}${path}`, installation.operatorKey, protocols)

const raw = (channel: number, payload: Uint8Array | string): Uint8Array<ArrayBuffer> =>
  new Uint8Array(Buffer.concat([Uint8Array.of(channel), Buffer.from(payload)]))
const status = (value: unknown): Uint8Array<ArrayBuffer> => raw(CHANNEL.status, JSON.stringify(value))
const START = { type: 'start', process: { argv: ['cat'], stdin: true }, credit_bytes: 65_536 }

/** Instead of a first frame that starts something. */
const FIRST: Readonly<Record<string, Uint8Array<ArrayBuffer> | string>> = {
  'a text message': JSON.stringify(START),
  'an empty message': new Uint8Array(),
  'an unknown channel': raw(9, 'x'),
  'a channel of the server': raw(CHANNEL.stdout, 'x'),
  'input before a start': raw(CHANNEL.stdin, 'x'),
  'a status that is no JSON': raw(CHANNEL.status, '{'),
  'a status that is no UTF-8': raw(CHANNEL.status, Uint8Array.of(0x22, 0xff, 0x22)),
  'a status of an unknown type': status({ type: 'hello' }),
  'a start with an unknown field': status({ ...START, sudo: true }),
  'a start with an unknown field further in': status({ ...START, process: { ...START.process, privileged: true } }),
  'a start without a command': status({ ...START, process: {} }),
  'a start with wrong types': status({ ...START, credit_bytes: 'all' }),
  'more credit than there is': status({ ...START, credit_bytes: Number.MAX_SAFE_INTEGER }),
  'negative credit': status({ ...START, credit_bytes: -1 }),
  'a status that is too large': raw(CHANNEL.status, JSON.stringify({ ...START, pad: 'x'.repeat(LIMITS.controlFrameBytes) })),
  'JSON too deep': raw(CHANNEL.status, `${'{"process":'.repeat(15_000)}1${'}'.repeat(15_000)}`),
}

describe('first frames that start nothing', () => {
  let costs: Costs
  before(async () => {
    costs = await costsOf(installation, sandbox)
  })
  after(() => assertCostNothing(installation, costs, sandbox))

  for (const [what, message] of Object.entries(FIRST)) {
    test(what, async () => {
      await using socket = open()
      assert.equal(await socket.opened(), true)
      socket.send(message)
      const { code } = await socket.ended()
      assert.ok(
        [CLOSE_CODE.malformed, CLOSE_CODE.tooBig, CLOSE_CODE.policy].some((allowed) => allowed === code),
        `${what} closes with ${code}`,
      )
      if (code === CLOSE_CODE.malformed) {
        assert.ok(
          socket.errors.some((error) => error === 'malformed_frame' || error === 'invalid_request'),
          `${what} is told as ${JSON.stringify(socket.errors)}`,
        )
      }
      assert.equal(socket.status('started'), false)
    })
  }

  test('nothing at all is not waited for without end', async () => {
    await using socket = open()
    assert.equal(await socket.opened(), true)
    await socket.ended(LIMITS.sessionStartTimeoutMs + 10_000)
    assert.equal(socket.status('started'), false)
  })

  test('a message that is far too large', async () => {
    await using socket = open()
    assert.equal(await socket.opened(), true)
    socket.send(raw(CHANNEL.stdin, Buffer.alloc(8 * 1024 * 1024)))
    const { code } = await socket.ended()
    assert.ok(
      [CLOSE_CODE.malformed, CLOSE_CODE.tooBig, 1006].some((allowed) => allowed === code),
      `closes with ${code}`,
    )
  })
})

/** After a proper start. */
const LATER: Readonly<Record<string, Uint8Array<ArrayBuffer> | string>> = {
  'a second start': status(START),
  'a data frame that is too large': raw(CHANNEL.stdin, Buffer.alloc(LIMITS.frameBytes + 1)),
  'credit of three bytes': raw(CHANNEL.credit, Uint8Array.of(0, 0, 1)),
  'a half-close of standard output': raw(CHANNEL.halfClose, Uint8Array.of(CHANNEL.stdout)),
  'an empty half-close': raw(CHANNEL.halfClose, ''),
  'a resize without rows': raw(CHANNEL.resize, '{"cols":80}'),
  'a resize to nothing': raw(CHANNEL.resize, '{"cols":0,"rows":0}'),
  'a resize beyond all bounds': raw(CHANNEL.resize, '{"cols":65535,"rows":24}'),
  'a signal that is none': raw(CHANNEL.signal, '{"signal":"BOOM"}'),
  'a signal that is a list': raw(CHANNEL.signal, '[]'),
  'a text message': 'hello',
}

describe('frames of a session that cannot be', () => {
  for (const [what, message] of Object.entries(LATER)) {
    test(what, async () => {
      await using socket = open()
      await socket.opened()
      socket.send(status(START))
      await until(30_000, 'the start', () => socket.status('started'))
      socket.send(message)
      const { code } = await socket.ended()
      assert.ok(
        [CLOSE_CODE.malformed, CLOSE_CODE.tooBig].some((allowed) => allowed === code),
        `${what} closes with ${code}`,
      )
      assert.equal(socket.status('exit'), false, 'a session that breaks off is never an exit')
    })
  }

  test('more input than there is credit for', async () => {
    await using socket = open()
    await socket.opened()
    socket.send(status({ ...START, process: { argv: ['sleep', '1000'], stdin: true } }))
    await until(30_000, 'the start', () => socket.status('started'))
    for (let sent = 0; sent < 64; sent += 1) socket.send(raw(CHANNEL.stdin, Buffer.alloc(LIMITS.frameBytes)))
    const { code } = await socket.ended()
    assert.equal(code, CLOSE_CODE.malformed, 'a client that sends beyond its credit is closed')
  })

  test('processes whose clients were closed live on and can be ended', async () => {
    for (const process of await sandbox.processes()) if (process.running) await process.kill()
    await until(30_000, 'they have ended', async () => (await sandbox.processes()).every((process) => !process.running))
  })
})

describe('upgrades that are refused', () => {
  const refused: Readonly<Record<string, () => HandSocket>> = {
    'a sandbox that nobody has': () => new HandSocket(`${sandbox.resource.gateway_url}/v1/sandboxes/sbl1aaaaaaaaaaaaaaaa/exec`, installation.operatorKey),
    'a key that nobody has': () => new HandSocket(`${sandbox.resource.gateway_url}/v1/sandboxes/${sandbox.id}/exec`, `sgk_${'A'.repeat(43)}`),
    'another subprotocol': () => open('/exec', ['v5.channel.k8s.io']),
    'a terminal that is none': () => open('/terminal?id=praaaaaaaaaaaaaaaa'),
    'a terminal without columns': () => open('/terminal?cols=0&rows=24'),
    'a terminal that is too wide': () => open('/terminal?cols=65535&rows=24'),
    'a terminal with an unknown field': () => open('/terminal?cols=80&rows=24&sudo=1'),
    'a path that is none': () => open('/nothing'),
  }
  for (const [what, connectIt] of Object.entries(refused)) {
    test(what, async () => {
      const before = (await sandbox.processes()).length
      await using socket = connectIt()
      if (await socket.opened()) {
        // A refusal may come after the upgrade, when the guest was asked.
        socket.frame({ channel: 'credit', bytes: 65_536 })
        const { code } = await socket.ended()
        assert.ok(code >= 4_400 || code === CLOSE_CODE.policy, `${what} closes with ${code}`)
      }
      assert.equal(socket.status('started'), false)
      assert.equal((await sandbox.processes()).length, before)
    })
  }
})

/** Bytes that are no WebSocket frames: with an unmasked, a reserved, a fragmented control frame. */
const NO_FRAMES: Readonly<Record<string, Uint8Array>> = {
  'an unmasked frame': Uint8Array.of(0x82, 0x02, 0x03, 0x7b),
  'a reserved bit': Uint8Array.of(0xf2, 0x80, 0, 0, 0, 0),
  'a reserved opcode': Uint8Array.of(0x83, 0x80, 0, 0, 0, 0),
  'a control frame that is too long': Uint8Array.of(0x89, 0xfe, 0x10, 0x00, 0, 0, 0, 0),
  'a frame of eight exabytes': Uint8Array.of(0x82, 0xff, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0),
}

describe('bytes that are no frames', () => {
  for (const [what, bytes] of Object.entries(NO_FRAMES)) {
    test(what, async () => {
      const { hostname, port, host } = new URL(sandbox.resource.gateway_url)
      const socket = connect(Number(port), hostname)
      try {
        const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()))
        socket.on('error', () => undefined)
        let answer = ''
        socket.on('data', (chunk: Buffer) => {
          answer += chunk.toString('latin1')
        })
        const head = [
          `GET /v1/sandboxes/${sandbox.id}/exec HTTP/1.1`,
          `Host: ${host}`,
          'Connection: Upgrade',
          'Upgrade: websocket',
          'Sec-WebSocket-Version: 13',
          'Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==',
          'Sec-WebSocket-Protocol: sandglass.v1',
          `Authorization: Bearer ${installation.operatorKey}`,
        ]
        socket.write(`${head.join('\r\n')}\r\n\r\n`)
        await until(30_000, 'the upgrade', () => answer.startsWith('HTTP/1.1 101'))
        socket.write(bytes)
        await within(20_000, `the end of a connection that sent ${what}`, closed)
      } finally {
        socket.destroy()
      }
    })
  }

  test('the gateway serves others as before', async () => {
    assert.equal((await sandbox.exec(['echo', 'fine'])).stdout, 'fine\n')
  })
})

/**
 * The gateway's WebSockets, by chance: requests for an upgrade, frames of the WebSocket protocol itself, frames of ours in any order. Whatever
 * comes, a socket ends with a named error or goes on; the gateway and the sandbox stay what they were.
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { before, test } from 'node:test'
import { CLOSE_CODE, encodeClientFrame, WS_SUBPROTOCOL } from '@sandglass/contract'
import { Sandbox } from '@sandglass/sdk'
import { HandSocket } from '../e2e/bad-input/socket.ts'
import { within } from '../e2e/bounds.ts'
import { afterTests, sharedInstallation } from '../e2e/file-installation.ts'
import type { Installation } from '../e2e/installation.ts'
import { type Random, randomOf } from '../failure/seed.ts'
import { mutated, pick, pieces, rounds, SEED } from './rounds.ts'
import { Witness } from './witness.ts'

const TEST_LIMIT_MS = 180_000
const LIMIT_MS = 15_000
const PARALLEL = 6

let installation: Installation
let sandbox: Sandbox
before(async () => {
  installation = await sharedInstallation()
  sandbox = await Sandbox.create({ client: installation.client(), ttlSeconds: 1_200 })
})
afterTests(() => sandbox?.delete())

const start = (process: object): Uint8Array => Buffer.concat([Buffer.of(3), Buffer.from(JSON.stringify({ type: 'start', process, credit_bytes: 100_000 }))])

const FIRST: readonly Uint8Array[] = [
  start({ argv: ['cat'], stdin: true }),
  start({ argv: ['sleep', '0.3'] }),
  start({ shell: 'yes | head -c 300000' }),
  start({ argv: ['sh'], tty: { cols: 80, rows: 24 } }),
  start({ argv: ['/no/such'] }),
  encodeClientFrame({ channel: 'status', status: { type: 'attach', process_id: 'key:nobody', credit_bytes: 10, stdin: true } }),
]
const LATER: readonly Uint8Array[] = [
  ...FIRST,
  encodeClientFrame({ channel: 'credit', bytes: 100_000 }),
  encodeClientFrame({ channel: 'credit', bytes: 0xffffffff }),
  encodeClientFrame({ channel: 'stdin', bytes: Buffer.from('hello\n') }),
  encodeClientFrame({ channel: 'stdin', bytes: new Uint8Array(60_000) }),
  encodeClientFrame({ channel: 'halfClose' }),
  encodeClientFrame({ channel: 'resize', size: { cols: 100, rows: 40 } }),
  encodeClientFrame({ channel: 'signal', signal: { signal: 'CONT' } }),
  encodeClientFrame({ channel: 'signal', signal: { signal: 'KILL', tree: true } }),
]
const PATHS = ['/exec', '/exec', '/terminal?shell=/bin/sh', '/terminal?cols=80&rows=24', '/terminal?id=key:nobody'] as const

/** One socket with frames of ours, mostly right at first, then less and less. */
async function session(random: Random): Promise<void> {
  await using socket = new HandSocket(`${sandbox.resource.gateway_url}/v1/sandboxes/${sandbox.id}${pick(random, PATHS)}`, installation.operatorKey)
  assert.equal(await socket.opened(), true, 'a proper upgrade is accepted')
  let over = false
  void socket.closed.then(() => {
    over = true
  })
  for (let step = 1 + random.integer(14), isFirst = true; step > 0 && !over; step -= 1, isFirst = false) {
    const samples = isFirst ? FIRST : LATER
    socket.send(random.chance(0.6) ? new Uint8Array(pick(random, samples)) : mutated(random, samples))
    // Some rounds let the answers come between their frames.
    if (random.chance(0.3)) await new Promise((resolve) => setImmediate(resolve))
  }
  if (random.chance(0.5)) await within(LIMIT_MS, 'an answer', Promise.race([socket.closed, new Promise((resolve) => setTimeout(resolve, random.integer(120)))]))
  assert.deepEqual(
    socket.errors.filter((code) => code === 'internal'),
    [],
    'no frame is an internal error',
  )
  if (over) assert.notEqual((await socket.closed).code, CLOSE_CODE.internal, 'no frame closes with 1011')
}

/** A frame of the WebSocket protocol, not always a right one. */
function webSocketFrame(random: Random): Uint8Array {
  const payload = random.chance(0.7) ? mutated(random, LATER) : random.bytes(random.integer(300))
  const fin = random.chance(0.85) ? 0x80 : 0
  const reserved = random.chance(0.05) ? 0x10 << random.integer(3) : 0
  const opcode = random.chance(0.8) ? pick(random, [2, 2, 2, 0, 1, 8, 9, 10]) : random.integer(16)
  const masked = random.chance(0.95)
  const lie = random.chance(0.04)
  const size = lie ? pick(random, [0, 125, 70_000, 2 ** 31]) : payload.byteLength
  const head = Buffer.alloc(14)
  head[0] = fin | reserved | opcode
  let at = 2
  if (size < 126) head[1] = size
  else if (size < 65_536) {
    head[1] = 126
    head.writeUInt16BE(size, 2)
    at = 4
  } else {
    head[1] = 127
    head.writeBigUInt64BE(BigInt(size), 2)
    at = 10
  }
  if (!masked) return Buffer.concat([head.subarray(0, at), payload])
  head[1] = (head[1] ?? 0) | 0x80
  const mask = random.bytes(4)
  head.set(mask, at)
  return Buffer.concat([head.subarray(0, at + 4), payload.map((byte, index) => byte ^ (mask[index % 4] ?? 0))])
}

function upgrade(random: Random): string {
  const lines = [
    `GET /v1/sandboxes/${sandbox.id}${pick(random, PATHS)} HTTP/1.1`,
    'Host: gateway',
    `Authorization: Bearer ${installation.operatorKey}`,
    'Connection: Upgrade',
    'Upgrade: websocket',
    'Sec-WebSocket-Version: 13',
    `Sec-WebSocket-Key: ${Buffer.from(random.bytes(16)).toString('base64')}`,
    `Sec-WebSocket-Protocol: ${WS_SUBPROTOCOL}`,
  ]
  // Now and then a line is missing, doubled or broken.
  const kind = random.integer(8)
  const at = 1 + random.integer(lines.length - 1)
  if (kind === 0) lines.splice(at, 1)
  else if (kind === 1) lines.splice(at, 0, lines[at] ?? '')
  else if (kind === 2) lines[at] = `${lines[at]}${pick(random, ['x', ', ', '\u0001', '%', ' 13'])}`
  else if (kind === 3) lines[0] = `GET ${pick(random, ['/', '*', '//exec', `/v1/sandboxes/${sandbox.id}/exec?%zz`, '/v1/sandboxes/%00/terminal'])} HTTP/1.1`
  return `${lines.join('\r\n')}\r\n\r\n`
}

async function closed(socket: Socket): Promise<void> {
  if (socket.destroyed) return
  await once(socket, 'close')
}

/** One TCP connection: an upgrade, then frames as bytes. */
async function connection(random: Random): Promise<void> {
  const { hostname, port } = new URL(sandbox.resource.gateway_url)
  const socket = connect(Number(port), hostname)
  socket.on('error', () => undefined)
  let answer = ''
  socket.on('data', (chunk: Buffer) => {
    if (answer.length < 64) answer += chunk.toString('latin1')
  })
  await once(socket, 'connect')
  socket.write(upgrade(random))
  await within(LIMIT_MS, 'an answer to an upgrade', Promise.race([once(socket, 'data'), closed(socket)]))
  const status = Number(/^HTTP\/1\.1 (\d{3})/.exec(answer)?.[1] ?? 0)
  assert.ok(status === 0 || status < 500, `an upgrade is answered with ${status}`)
  if (status === 101) {
    for (let frames = 1 + random.integer(20); frames > 0 && !socket.destroyed; frames -= 1) {
      for (const piece of pieces(random, webSocketFrame(random))) socket.write(piece)
    }
  }
  if (random.chance(0.5)) socket.end()
  else socket.destroy()
  // A server that has been told the end closes too; one that waits for a close frame has its own bound.
  await Promise.race([closed(socket), new Promise((resolve) => setTimeout(resolve, 300))])
  socket.destroy()
}

for (const [name, one] of Object.entries({ 'frames of ours': session, 'frames of the protocol below': connection })) {
  test(`${name} by chance leave the gateway as it was`, { timeout: TEST_LIMIT_MS }, async () => {
    const witness = new Witness(installation)
    await rounds(`gateway-frames`, async (random) => {
      const streams = Array.from({ length: PARALLEL }, () => random.integer(2 ** 31))
      await Promise.all(streams.map((stream) => one(randomOf(SEED, name, stream))))
    })
    for (const process of await sandbox.processes()) if (process.running) await process.kill().catch(() => undefined)
    await witness.unharmed([sandbox])
  })
}

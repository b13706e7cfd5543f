/**
 * Hostile bytes of a host against the guest agent, by chance: PID 1 of a real sandbox dials, and finds instead of the host agent something
 * that answers its preamble with nonsense, speaks half of HTTP/2, or asks for what nobody should. PID 1 must neither die nor grow nor hang.
 */
import assert from 'node:assert/strict'
import { renameSync, rmSync } from 'node:fs'
import { type ClientHttp2Session, connect, type OutgoingHttpHeaders } from 'node:http2'
import { createServer, type Server, type Socket } from 'node:net'
import { join } from 'node:path'
import { before, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { GuestHealthSchema, GuestMetricsSchema, parserOf } from '@sandglass/contract'
import { Sandbox } from '@sandglass/sdk'
import { until, within } from '../e2e/bounds.ts'
import { cutConnections } from '../e2e/cut-connections.ts'
import { afterTests, sharedInstallation } from '../e2e/file-installation.ts'
import type { Installation } from '../e2e/installation.ts'
import type { Random } from '../failure/seed.ts'
import { type Channel, channelOf } from './channel.ts'
import { http2Noise } from './http2-noise.ts'
import { mutated, pick, pieces, rounds } from './rounds.ts'
import { Witness } from './witness.ts'

const TEST_LIMIT_MS = 180_000
const DIAL_MS = 30_000
const ANSWER_MS = 20_000
const REQUESTS = 24
const MIB = 1024 * 1024
const GROWTH_BYTES = 24 * MIB
const ACCEPT = Buffer.from('{"accept":true,"version":1,"epoch":1}\n')

const health = parserOf(GuestHealthSchema)
const metrics = parserOf(GuestMetricsSchema)

let installation: Installation
let sandbox: Sandbox
let channel: Channel
before(async () => {
  installation = await sharedInstallation()
  sandbox = await Sandbox.create({ client: installation.client(), ttlSeconds: 1_200 })
  channel = channelOf(installation.home, sandbox.id)
})
afterTests(() => sandbox?.delete())

/** Takes the place of the host agent at one channel. */
class HostileHost implements AsyncDisposable {
  readonly #server: Server
  readonly #dialled: Socket[] = []
  readonly #aside: string

  private constructor() {
    this.#aside = join(channel.directory, 'channel.sock.aside')
    this.#server = createServer((socket) => {
      socket.on('error', () => undefined)
      this.#dialled.push(socket)
    })
  }

  static async take(): Promise<HostileHost> {
    const host = new HostileHost()
    renameSync(channel.socket, host.#aside)
    // The path of a unix socket is limited; a name in the working directory is not.
    const before = process.cwd()
    process.chdir(channel.directory)
    try {
      await new Promise<void>((resolve, reject) => host.#server.once('error', reject).listen('channel.sock', resolve))
    } finally {
      process.chdir(before)
    }
    cutConnections(installation.home, 'host-guest')
    return host
  }

  /** The guest's next connection, its preamble read. */
  async guest(): Promise<Socket> {
    const socket = await until(DIAL_MS, 'the guest dials', () => this.#dialled.shift())
    socket.pause()
    await within(DIAL_MS, 'the preamble of the guest', readLine(socket))
    return socket
  }

  async [Symbol.asyncDispose](): Promise<void> {
    rmSync(channel.socket, { force: true })
    renameSync(this.#aside, channel.socket)
    for (const socket of this.#dialled) socket.destroy()
    await new Promise((resolve) => this.#server.close(resolve))
  }
}

async function readLine(socket: Socket): Promise<string> {
  let line = ''
  for (;;) {
    const byte: unknown = socket.read(1)
    if (byte instanceof Buffer) {
      if (byte[0] === 0x0a) return line
      line += byte.toString('latin1')
    } else await new Promise((resolve) => socket.once('readable', resolve).once('close', resolve))
    if (socket.destroyed) throw new Error('the guest went away before its preamble')
  }
}

const ANSWERS: readonly Uint8Array[] = [
  ACCEPT,
  Buffer.from('{"accept":false,"reason":"no"}\n'),
  Buffer.from('{"accept":true,"version":2,"epoch":1}\n'),
  Buffer.from('{"accept":true,"version":1,"epoch":-1,"more":[]}\n'),
  Buffer.alloc(4_000, 0x7b),
]

const PATHS: readonly string[] = [
  '/v1/health',
  '/v1/metrics',
  '/v1/processes',
  '/v1/processes/praaaaaaaaaaaaaaaa',
  '/v1/processes/key:x/output?stream=stdout&since=5&follow=0',
  '/v1/files?path=/tmp/fuzz&user=root',
  '/v1/files?path=%2e%2e%2f%00%ff',
  '/v1/files/list?path=/proc&limit=10&cursor=AAAA',
  '/v1/files/stat?path=/dev/null&follow=1',
  '/v1/files/archive?path=/etc/apt',
  '/v1/identity',
  '/v1/exec?kill_on_disconnect=1',
  '/v1/files/mkdir',
  '/v1/files/move',
  '/v1/nothing',
]
const JSON_BODIES: readonly Uint8Array[] = [
  '{"argv":["true"]}',
  '{"shell":"echo hello","env":{"A":"1"},"key":"fuzz","timeout_ms":1000}',
  '{"argv_b64":["/w=="],"tty":{"cols":80,"rows":24},"timeout_ms":500}',
  '{"path":"/tmp/fuzz-d","parents":true}',
  '{"from":"/tmp/a","to":"/tmp/b","overwrite":true}',
  '{"sandbox":"sbxxxxxxxxxxxxxxxxxx","generation":7,"hostname":"h","env":{},"default_user":"root","default_cwd":"/","limits":{}}',
  `${'['.repeat(30_000)}`,
].map((text) => Buffer.from(text))
const METHODS = ['GET', 'GET', 'POST', 'POST', 'PUT', 'DELETE', 'HEAD', 'PATCH', 'CONNECT'] as const

function session(socket: Socket): ClientHttp2Session {
  const made = connect('http://guest', { createConnection: () => socket, settings: { enablePush: false } })
  made.on('error', () => undefined)
  return made
}

/** Status and body, or undefined when the stream was reset. A stream that follows for ever is left. */
function request(client: ClientHttp2Session, headers: OutgoingHttpHeaders, body?: Uint8Array): Promise<{ status: number; body: string } | undefined> {
  return new Promise((resolve) => {
    let status = 0
    let text = ''
    const stream = client.request(headers, { endStream: body === undefined })
    stream.on('error', () => undefined)
    stream.on('response', (head) => {
      status = head[':status'] ?? 0
    })
    stream.on('data', (chunk: Buffer) => {
      if (text.length < MIB) text += chunk.toString('latin1')
    })
    stream.once('close', () => resolve(status === 0 ? undefined : { status, body: text }))
    if (body !== undefined) stream.end(body)
    setTimeout(() => {
      if (status !== 0) stream.close(8)
    }, ANSWER_MS / 4).unref()
  })
}

/** Proper HTTP/2, improper requests. */
async function requests(random: Random, socket: Socket): Promise<void> {
  const client = session(socket)
  try {
    const asked = Array.from({ length: REQUESTS }, async () => {
      // Node.js sends only what a path may be made of.
      const path = Buffer.from(
        mutated(
          random,
          PATHS.map((text) => Buffer.from(text)),
        ),
      )
        .toString('latin1')
        .replaceAll(/[^\x21-\x7e]/g, '%ff')
      const method = pick(random, METHODS)
      const headers = {
        ':method': method,
        ':path': `/${path.replace(/^\/+/, '')}`,
        'content-type': pick(random, ['application/json', 'text/plain']),
        range: pick(random, ['bytes=0-1', 'bytes=9-1', 'x']),
      }
      const body = random.chance(0.6) ? (random.chance(0.5) ? pick(random, JSON_BODIES) : mutated(random, JSON_BODIES)) : undefined
      const what = `${method} ${path.slice(0, 200)}`
      const answer = await within(
        ANSWER_MS,
        `an answer to ${what}`,
        request(client, method === 'CONNECT' ? { ':method': method, ':authority': 'guest' } : headers, body),
      )
      if (answer === undefined) return
      assert.ok(answer.status < 500 || answer.status === 507, `${what} is answered with ${answer.status}: ${answer.body.slice(0, 300)}`)
    })
    await Promise.all(asked)
  } finally {
    client.destroy()
  }
}

async function hostile(random: Random, socket: Socket): Promise<void> {
  const kind = random.integer(10)
  if (kind === 0) {
    for (const piece of pieces(random, mutated(random, ANSWERS))) socket.write(piece)
    await delay(20)
  } else if (kind < 5) {
    socket.write(ACCEPT)
    socket.resume()
    const noise = kind === 1 ? random.bytes(random.integer(4_000)) : http2Noise(random, 'client')
    for (const piece of pieces(random, noise)) socket.write(piece)
    await delay(random.integer(60))
  } else {
    socket.write(ACCEPT)
    await requests(random, socket)
  }
  socket.destroy()
}

/** Asks PID 1 how it is, on a connection that behaves. */
async function wellBeing(host: HostileHost): Promise<{ bootId: string; bytes: number }> {
  const socket = await host.guest()
  socket.write(ACCEPT)
  const client = session(socket)
  try {
    const read = async (path: string): Promise<unknown> => {
      const answer = await within(ANSWER_MS, `an answer to ${path}`, request(client, { ':method': 'GET', ':path': path }))
      assert.equal(answer?.status, 200, `${path} of PID 1 answers`)
      return JSON.parse(answer.body)
    }
    const { boot_id: bootId } = health.parse(await read('/v1/health'))
    return { bootId, bytes: metrics.parse(await read('/v1/metrics')).agent_memory_bytes }
  } finally {
    client.destroy()
  }
}

test('a hostile host does not harm the guest agent', { timeout: TEST_LIMIT_MS }, async () => {
  const witness = new Witness(installation)
  {
    await using host = await HostileHost.take()
    const before = await wellBeing(host)
    await rounds('host-to-guest', async (random, index) => {
      await hostile(random, await host.guest())
      if (index % 8 !== 7) return
      const now = await wellBeing(host)
      assert.equal(now.bootId, before.bootId, 'PID 1 is the one that it was')
      assert.ok(now.bytes <= before.bytes + GROWTH_BYTES, `PID 1 stays flat, it has ${now.bytes} bytes instead of ${before.bytes}`)
    })
    assert.equal((await wellBeing(host)).bootId, before.bootId, 'PID 1 is the one that it was')
  }
  await witness.unharmed([sandbox])
})

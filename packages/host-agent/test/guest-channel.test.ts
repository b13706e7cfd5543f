/** Everything that dials a channel may be hostile: slow, loud, half there, or somebody else. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { test } from 'node:test'
import { LIMITS } from '@sandglass/contract'
import { ChannelUnderTest, SANDBOX } from './support/channel-directory.ts'
import { BOOT_ID, dial, nextLine, preambleLine, ScriptedGuest, type Serve } from './support/scripted-guest.ts'
import { until } from './support/until.ts'

const hello: Serve = (stream) => {
  stream.respond({ ':status': 200 })
  stream.end('{"hello":true}')
}

async function answers(under: ChannelUnderTest): Promise<boolean> {
  const { status } = await under.channel.session().exchange('GET', '/v1/health')
  return status === 200
}

const CLOSED_MS = 30_000

async function untilClosed(socket: Awaited<ReturnType<typeof dial>>): Promise<void> {
  if (socket.closed) return
  socket.resume()
  await once(socket, 'close', { signal: AbortSignal.timeout(CLOSED_MS) })
}

const garbage: [name: string, bytes: string | Buffer][] = [
  ['what is not JSON', 'hello\n'],
  ['JSON that is not a preamble', '{"a":1}\n'],
  ['a version of the future', preambleLine({ version: 99 })],
  ['a line that does not end', Buffer.alloc(64 * 1024, 0x61)],
  ['a line that is too long', `${' '.repeat(LIMITS.guestPreambleBytes)}${preambleLine()}`],
  ['more than its preamble before it was answered', `${preambleLine()}PRI * HTTP/2.0\r\n`],
  ['invalid UTF-8', Buffer.concat([randomBytes(100), Buffer.from('\n')])],
  ['HTTP/1.1', 'GET / HTTP/1.1\r\nHost: x\r\n\r\n'],
]
for (const [name, bytes] of garbage) {
  test(`a guest that sends ${name} is turned away, and the next one is welcome`, async () => {
    await using under = await ChannelUnderTest.open()
    const socket = await dial(under.path)
    socket.write(bytes)
    await untilClosed(socket)
    assert.doesNotMatch(under.lines.join(''), /no preamble in time/, 'it was not its silence')
    await ScriptedGuest.dial(under.path, hello)
    assert.ok(await answers(under))
  })
}

test('a guest that says nothing is closed in time', async () => {
  await using under = await ChannelUnderTest.open()
  const began = performance.now()
  const socket = await dial(under.path)
  await untilClosed(socket)
  assert.ok(performance.now() - began >= LIMITS.guestPreambleMs - 10)
  assert.match(under.lines.join(''), /no preamble in time/)
})

test('a preamble that comes byte by byte is taken, when it comes in time', async () => {
  await using under = await ChannelUnderTest.open()
  const socket = await dial(under.path)
  socket.setNoDelay(true)
  for (const byte of preambleLine()) socket.write(byte)
  assert.equal(JSON.parse((await nextLine(socket)) ?? '{}').accept, true)
})

test('connections are counted: beyond the limit they are dropped, and an established guest goes on', async () => {
  await using under = await ChannelUnderTest.open()
  await ScriptedGuest.dial(under.path, hello)
  const sockets = await Promise.all(Array.from({ length: 50 }, () => dial(under.path)))
  for (const socket of sockets) socket.resume()
  await until('the drops', () => (sockets.filter((socket) => socket.closed).length >= 50 - LIMITS.guestConnections ? true : undefined))
  assert.ok(await answers(under))
  for (const socket of sockets) socket.destroy()
})

test('a guest that dials without end is heard no more often than the pace allows, in the log too', async () => {
  await using under = await ChannelUnderTest.open()
  const began = performance.now()
  for (let dials = 0; dials < LIMITS.guestDialBurst * 4; dials += 1) {
    const socket = await dial(under.path)
    socket.write('x\n')
    socket.resume()
    await until('the end of a dial', () => (socket.closed ? true : undefined))
  }
  const allowed = LIMITS.guestDialBurst + Math.ceil((performance.now() - began) / LIMITS.guestDialEveryMs)
  assert.ok(under.lines.length >= LIMITS.guestDialBurst && under.lines.length <= allowed, `${under.lines.length} lines, ${allowed} allowed`)
  await until('a dial that is heard again', async () => {
    const socket = await dial(under.path)
    socket.write(preambleLine())
    const line = await nextLine(socket)
    return line === undefined ? undefined : true
  })
})

test('a guest with another identity is told so, and the right one stays connected', async () => {
  await using under = await ChannelUnderTest.open({ bootId: BOOT_ID })
  const identity = { sandbox: SANDBOX, generation: 1 }
  await ScriptedGuest.dial(under.path, hello, identity)
  for (const wrong of [{}, { ...identity, generation: 2 }, { ...identity, boot_id: '9'.repeat(32) }, { ...identity, sandbox: 'sblobbbbbbbbbbbbbbbb' }]) {
    await assert.rejects(ScriptedGuest.dial(under.path, hello, wrong), /turned away/)
  }
  assert.ok(await answers(under))
})

test('a guest that dials again takes the place of its former session', async () => {
  await using under = await ChannelUnderTest.open()
  const first = await ScriptedGuest.dial(under.path, hello)
  await ScriptedGuest.dial(under.path, hello)
  await until('the first to be closed', () => (first.socket.closed ? true : undefined))
  assert.ok(await answers(under))
  assert.equal(under.lost, 0)
})

test('a guest that goes away is noticed, and found again when it returns', async () => {
  await using under = await ChannelUnderTest.open()
  const guest = await ScriptedGuest.dial(under.path, hello)
  guest.vanish()
  await until('the loss', () => (under.lost === 1 ? true : undefined))
  assert.throws(() => under.channel.session(), { code: 'lost_contact' })
  const waiting = under.channel.waitForSession(CLOSED_MS)
  await ScriptedGuest.dial(under.path, hello)
  await waiting
  assert.ok(await answers(under))
})

test('garbage after the preamble ends that session only', async () => {
  await using under = await ChannelUnderTest.open()
  await using other = await ChannelUnderTest.open()
  await ScriptedGuest.dial(other.path, hello)
  const socket = await dial(under.path)
  socket.write(preambleLine())
  await nextLine(socket)
  socket.write(randomBytes(100_000))
  await untilClosed(socket)
  assert.ok(await answers(other))
})

const hostileAnswers: [name: string, serve: Serve, code: string][] = [
  ['a body without end', flood, 'body_too_large'],
  ['a reset', (stream) => stream.destroy(new Error('no')), 'lost_contact'],
  ['half a body', half, 'lost_contact'],
]

function half(stream: Parameters<Serve>[0]): void {
  stream.respond({ ':status': 200 })
  stream.write('{', () => stream.destroy(new Error('no')))
}

function flood(stream: Parameters<Serve>[0]): void {
  stream.respond({ ':status': 200 })
  const more = (): void => {
    while (!stream.destroyed && stream.write(Buffer.alloc(64 * 1024)));
  }
  stream.on('drain', more)
  more()
}

for (const [name, serve, code] of hostileAnswers) {
  test(`an answer that is ${name} is ${code}`, async () => {
    await using under = await ChannelUnderTest.open()
    await ScriptedGuest.dial(under.path, serve)
    await assert.rejects(under.channel.session().exchange('GET', '/v1/health'), { code })
  })
}

test('headers beyond the limit end the request, not the host', async () => {
  await using under = await ChannelUnderTest.open()
  await ScriptedGuest.dial(under.path, (stream) => {
    stream.respond(Object.fromEntries(Array.from({ length: 500 }, (_, index) => [`x-${index}`, 'v'.repeat(100)])))
    stream.end()
  })
  await assert.rejects(under.channel.session().exchange('GET', '/v1/health'), { code: 'lost_contact' })
})

import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { Sandbox, Sandglass, SandglassError } from '../src/index.ts'
import { hurriedWorld } from './hurried-world.ts'
import { ScriptedProcess } from './scripted-process.ts'
import { ScriptedSandboxes, wireProcess } from './scripted-sandboxes.ts'
import { problem, ScriptedServer } from './scripted-server.ts'

const API_KEY = `sgk_${'a'.repeat(43)}`
const sha256 = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex')
const failsWith = (code: string) => (error: unknown) => error instanceof SandglassError && error.code === code

async function sandboxOn(server: ScriptedServer): Promise<Sandbox> {
  new ScriptedSandboxes(server)
  return Sandbox.create({ client: new Sandglass({ url: server.url, apiKey: API_KEY, world: hurriedWorld() }) })
}

/** Deterministic: a failure can be run again. */
function cutsOf(count: number, total: number): number[] {
  let state = 7
  return Array.from({ length: count }, () => {
    state = (state * 1_103_515_245 + 12_345) % 2 ** 31
    return 1 + (state % Math.floor((2 * total) / count))
  })
}

test('output of both streams arrives whole, apart, and in order', async () => {
  await using server = await ScriptedServer.start()
  const sandbox = await sandboxOn(server)
  const stdout = randomBytes(300_001)
  const stderr = randomBytes(70_000)
  new ScriptedProcess(server, { stdout, stderr, exit: { exit_code: 3 } })
  const spawned = await sandbox.spawn(['x'])
  const [out, err, exit] = await Promise.all([spawned.stdout.readBytes(), spawned.stderr.readBytes(), spawned.exit])
  assert.equal(sha256(out), sha256(stdout))
  assert.equal(sha256(err), sha256(stderr))
  assert.deepEqual(exit, { exitCode: 3, signal: null, timedOut: false, durationMs: 12, truncated: false, outputOpen: false })
})

test('a connection that breaks fifty times in the middle of output loses and doubles no byte (EX11)', async () => {
  await using server = await ScriptedServer.start()
  const sandbox = await sandboxOn(server)
  const stdout = randomBytes(2_000_003)
  const stderr = randomBytes(200_003)
  const script = new ScriptedProcess(server, { stdout, stderr, cutAfter: cutsOf(50, 2_200_006) })
  const spawned = await sandbox.spawn(['x'])
  const [out, err] = await Promise.all([spawned.stdout.readBytes(), spawned.stderr.readBytes()])
  await spawned.exit
  assert.equal(sha256(out), sha256(stdout))
  assert.equal(sha256(err), sha256(stderr))
  assert.equal(script.starts, 1)
  assert.ok(script.attaches >= 40, `${script.attaches} attaches`)
})

test('a start whose answer is lost is repeated with its key', async () => {
  await using server = await ScriptedServer.start()
  const sandbox = await sandboxOn(server)
  const script = new ScriptedProcess(server, { stdout: Buffer.from('once') })
  const answer = server.onSocket
  let lost = 0
  server.onSocket = (peer, frame) => {
    if (lost < 2 && frame.channel === 'status' && frame.status.type === 'start') {
      lost += 1
      if (frame.status.process.key !== undefined) script.keys.add(frame.status.process.key)
      peer.cut()
    } else answer(peer, frame)
  }
  const spawned = await sandbox.spawn(['x'])
  assert.equal(await spawned.stdout.readText(), 'once')
  assert.equal(lost, 2)
  assert.equal(script.keys.size, 1)
})

test('a reader that does not read holds the sender back: never more than the window is on its way', async () => {
  await using server = await ScriptedServer.start()
  const sandbox = await sandboxOn(server)
  const stdout = randomBytes(3_000_000)
  const script = new ScriptedProcess(server, { stdout })
  const answer = server.onSocket
  let granted = 0
  server.onSocket = (peer, frame) => {
    if (frame.channel === 'credit') granted += frame.bytes
    if (frame.channel === 'status') granted += frame.status.credit_bytes
    answer(peer, frame)
  }
  const spawned = await sandbox.spawn(['x'], { windowBytes: 100_000 })
  let read = 0
  for await (const bytes of spawned.stdout) {
    read += bytes.byteLength
    assert.ok(granted <= read + 100_000, `${granted} granted after ${read} were read`)
  }
  assert.equal(read, stdout.byteLength)
  assert.equal(script.attaches, 0)
})

test('48 MiB of input arrive whole, also over connections that break and lose what was on its way (EX13)', async () => {
  await using server = await ScriptedServer.start()
  const sandbox = await sandboxOn(server)
  const cutInputAfter = [
    { bytes: 5_000_000, lost: 0 },
    { bytes: 1, lost: 1 },
    { bytes: 7_000_000, lost: 4_096 },
    { bytes: 11_111_111, lost: 65_536 },
  ]
  const script = new ScriptedProcess(server, { waitsForInput: true, cutInputAfter, stdinCredit: 256 * 1024 })
  const block = randomBytes(1024 * 1024)
  const spawned = await sandbox.spawn(['wc', '-c'], {
    stdin: (async function* () {
      for (let count = 0; count < 48; count += 1) yield block
    })(),
  })
  const exit = await spawned.exit
  assert.equal(exit.exitCode, 0)
  assert.equal(script.receivedBytes, 48 * 1024 * 1024)
  const digest = createHash('sha256')
  for (let count = 0; count < 48; count += 1) digest.update(block)
  assert.equal(sha256(Buffer.concat(script.received)), digest.digest('hex'))
  assert.equal(script.attaches, 4)
  assert.equal(script.writers.size, 1)
})

test('a session writes as one writer over all its connections, each from the first byte that may not have arrived', async () => {
  await using server = await ScriptedServer.start()
  const sandbox = await sandboxOn(server)
  const openings: unknown[] = []
  const twice = Promise.withResolvers<void>()
  const late = wireProcess({ stdin: { accepted: 11, open: true } })
  server.onSocket = (peer, frame) => {
    if (frame.channel === 'status') {
      openings.push({ writer: frame.status.writer, from: frame.status.type === 'attach' ? frame.status.stdin_offset : undefined })
      const process = openings.length === 1 ? wireProcess({ stdin: { accepted: 0, open: true } }) : late
      peer.status({ type: 'started', process, stdout_offset: 0, stderr_offset: 0, stdin_credit_bytes: 1_000 })
    } else if (frame.channel === 'stdin' && openings.length === 1) {
      // The first write is credited; of the second nobody says what became of it.
      if (Buffer.from(frame.bytes).toString() === 'known ') peer.credit(frame.bytes.byteLength)
      else peer.cut()
    } else if (frame.channel === 'stdin') {
      openings.push(Buffer.from(frame.bytes).toString())
      peer.status({ type: 'error', code: 'stdin_offset', detail: 'Another client has written.' })
      twice.resolve()
    }
  }
  const spawned = await sandbox.spawn(['cat'], { stdin: true })
  await spawned.stdin.write('known ')
  await spawned.stdin.write('lost?')
  await twice.promise
  const [first, second, sent] = openings
  assert.ok(first !== null && typeof first === 'object' && 'writer' in first && typeof first.writer === 'string')
  assert.deepEqual([second, sent], [{ writer: first.writer, from: 6 }, 'lost?'])
  await assert.rejects(spawned.exit, failsWith('stdin_offset'))
  await assert.rejects(spawned.stdin.write('x'), failsWith('stdin_offset'))
})

test('bytes that are gone are an error, or a gap for those who ask', async () => {
  const stdout = randomBytes(1_000_000)
  for (const asks of [false, true]) {
    await using server = await ScriptedServer.start()
    const sandbox = await sandboxOn(server)
    new ScriptedProcess(server, { stdout, cutAfter: [1_000], keptFrom: 600_000 })
    const gaps: unknown[] = []
    const spawned = await sandbox.spawn(['x'], asks ? { onGap: (stream, gap) => gaps.push([stream, gap]) } : {})
    if (!asks) await assert.rejects(spawned.stdout.readBytes(), failsWith('output_gone'))
    else {
      const bytes = await spawned.stdout.readBytes()
      assert.equal(sha256(bytes), sha256(Buffer.concat([stdout.subarray(0, 1_000), stdout.subarray(600_000)])))
      assert.deepEqual(gaps, [['stdout', { from: 1_000, to: 600_000 }]])
      assert.equal((await spawned.exit).truncated, true)
    }
  }
})

test('contact that is not found again is lost_contact, never an exit', async () => {
  await using server = await ScriptedServer.start()
  const sandbox = await sandboxOn(server)
  let count = 0
  server.onSocket = (peer) => {
    count += 1
    if (count === 1) peer.status({ type: 'started', process: wireProcess(), stdout_offset: 0, stderr_offset: 0, stdin_credit_bytes: 0 })
    peer.cut()
  }
  const spawned = await sandbox.spawn(['x'])
  await assert.rejects(spawned.exit, failsWith('lost_contact'))
  await assert.rejects(spawned.stdout.readBytes(), failsWith('lost_contact'))
  assert.ok(count > 5)
})

test('connections that begin and break at once are not contact', async () => {
  await using server = await ScriptedServer.start()
  const sandbox = await sandboxOn(server)
  server.onSocket = (peer) => {
    peer.status({ type: 'started', process: wireProcess(), stdout_offset: 0, stderr_offset: 0, stdin_credit_bytes: 0 })
    peer.socket.close(1011)
  }
  const spawned = await sandbox.spawn(['x'])
  await assert.rejects(spawned.exit, failsWith('lost_contact'))
})

test('a refusal in the stream, a close code and a refused upgrade each end the session with their error', async () => {
  await using server = await ScriptedServer.start()
  const sandbox = await sandboxOn(server)
  server.onSocket = (peer) => peer.status({ type: 'error', code: 'executable_not_found', detail: 'No /no/such.', request_id: 'rqcccccccccccccccc' })
  await assert.rejects(sandbox.spawn(['/no/such']), (error: unknown) => {
    assert.ok(error instanceof SandglassError)
    return error.code === 'executable_not_found' && error.requestId === 'rqcccccccccccccccc'
  })
  server.onSocket = (peer) => peer.socket.close(4410, 'It was deleted.')
  await assert.rejects(sandbox.spawn(['x']), failsWith('sandbox_ended'))
  server.refuseUpgrade = problem('sandbox_not_found')
  server.on('POST', /signal$/, () => problem('sandbox_not_found', 'There is none.'))
  await assert.rejects(sandbox.spawn(['x']), failsWith('sandbox_not_found'))
  // A viewer may read, but not run: only a request with the same rights tells.
  server.on('POST', /signal$/, () => problem('forbidden', 'A viewer may not.'))
  await assert.rejects(sandbox.terminal(), failsWith('forbidden'))
  server.on('POST', /signal$/, () => problem('process_not_found'))
  await assert.rejects(sandbox.spawn(['x']), failsWith('unavailable'))
  assert.equal(server.sockets.length, 2)
})

test('malformed frames end the session: garbage, output before started, more than the credit', async () => {
  await using server = await ScriptedServer.start()
  const sandbox = await sandboxOn(server)
  server.onSocket = (peer) => peer.socket.send(Buffer.from([9, 1, 2]))
  await assert.rejects(sandbox.spawn(['x']), failsWith('malformed_frame'))
  server.onSocket = (peer) => peer.socket.send(Buffer.from([3, 0x7b]))
  await assert.rejects(sandbox.spawn(['x']), failsWith('malformed_frame'))
  server.onSocket = (peer) => peer.output('stdout', Buffer.from('early'))
  await assert.rejects(sandbox.spawn(['x']), failsWith('malformed_frame'))
  server.onSocket = (peer, frame) => {
    if (frame.channel !== 'status') return
    peer.status({ type: 'started', process: wireProcess(), stdout_offset: 0, stderr_offset: 0, stdin_credit_bytes: 0 })
    peer.output('stdout', new Uint8Array(2_000))
  }
  const spawned = await sandbox.spawn(['x'], { windowBytes: 1_000 })
  await assert.rejects(spawned.exit, failsWith('malformed_frame'))
})

test('an exit that overtakes output waits for it', async () => {
  await using server = await ScriptedServer.start()
  const sandbox = await sandboxOn(server)
  server.onSocket = (peer, frame) => {
    if (frame.channel !== 'status') return
    const process = wireProcess({ stdout: { start: 0, end: 4 }, state: 'exited', exit_code: 0 })
    peer.status({ type: 'started', process: wireProcess(), stdout_offset: 0, stderr_offset: 0, stdin_credit_bytes: 0 })
    peer.status({ type: 'exit', process })
    peer.output('stdout', Buffer.from('late'))
  }
  const spawned = await sandbox.spawn(['x'])
  assert.equal(await spawned.stdout.readText(), 'late')
  assert.equal((await spawned.exit).exitCode, 0)
})

test('text keeps characters whole that are split between frames, and a byte order mark', async () => {
  await using server = await ScriptedServer.start()
  const sandbox = await sandboxOn(server)
  const text = '\uFEFF日本語🤣é'.repeat(3_000)
  new ScriptedProcess(server, { stdout: Buffer.from(text), cutAfter: [1, 2, 3, 5, 7, 11, 13] })
  const spawned = await sandbox.spawn(['x'])
  let read = ''
  for await (const part of spawned.stdout.text()) read += part
  assert.equal(read, text)
})

test('leaving a loop early lets the process go on', async () => {
  await using server = await ScriptedServer.start()
  const sandbox = await sandboxOn(server)
  new ScriptedProcess(server, { stdout: randomBytes(5_000_000), exit: { exit_code: 0 } })
  const spawned = await sandbox.spawn(['x'])
  for await (const _ of spawned.stdout) break
  assert.equal((await spawned.exit).exitCode, 0)
})

test('an aborted signal ends the process and fails the streams with its reason', async () => {
  await using server = await ScriptedServer.start()
  const sandbox = await sandboxOn(server)
  const killed = Promise.withResolvers<string>()
  server.on('POST', /signal$/, ({ path, body }) => {
    killed.resolve(`${decodeURIComponent(path.split('/').at(-2) ?? '')} ${body}`)
    return { status: 200, json: wireProcess() }
  })
  server.onSocket = (peer, frame) => {
    if (frame.channel === 'status') peer.status({ type: 'started', process: wireProcess(), stdout_offset: 0, stderr_offset: 0, stdin_credit_bytes: 0 })
  }
  const stop = new AbortController()
  const spawned = await sandbox.spawn(['sleep', '1000'], { signal: stop.signal, processKey: 'mine' })
  stop.abort(new Error('enough'))
  await assert.rejects(spawned.exit, /enough/)
  await assert.rejects(spawned.stdout.readBytes(), /enough/)
  assert.equal(await killed.promise, 'key:mine {"signal":"KILL"}')
})

test('writing to a process that has ended is stdin_closed', async () => {
  await using server = await ScriptedServer.start()
  const sandbox = await sandboxOn(server)
  new ScriptedProcess(server, { stdinCredit: 10 })
  const spawned = await sandbox.spawn(['true'], { stdin: true })
  await spawned.exit
  await assert.rejects(spawned.stdin.write('x'), failsWith('stdin_closed'))
})

test('a terminal is attached at the offset where it was left, and told its size again', async () => {
  await using server = await ScriptedServer.start()
  const sandbox = await sandboxOn(server)
  const record = wireProcess({ tty: true, stdout: { start: 10, end: 100 } })
  server.on('GET', /processes\/pr/, () => ({ status: 200, json: record }))
  const begun = new Set<unknown>()
  server.onSocket = (peer, frame) => {
    if (begun.has(peer)) return
    begun.add(peer)
    assert.equal(frame.channel, 'credit')
    const since = Number(new URL(peer.url, server.url).searchParams.get('since'))
    peer.status({ type: 'started', process: record, stdout_offset: since, stderr_offset: 0, stdin_credit_bytes: 1_000 })
    peer.output('stdout', Buffer.from('0123456789'.repeat(10)).subarray(since, since + 10))
    // The first connection ends after its resize was seen.
    if (begun.size === 1) peer.socket.once('message', () => peer.cut())
  }
  const terminal = await sandbox.terminal({ id: record.id, since: 40, cols: 100, rows: 30 })
  await terminal.output.read()
  await terminal.output.read()
  assert.equal(terminal.offset, 60)
  const place = `/v1/sandboxes/${sandbox.id}/terminal?cols=100&rows=30&id=${record.id}`
  assert.deepEqual(
    server.sockets.map(({ url }) => url),
    [`${place}&since=40`, `${place}&since=50`],
  )
  terminal.detach()
  await assert.rejects(terminal.exit, failsWith('lost_contact'))
})

test('input goes on behind what other clients have written before', async () => {
  await using server = await ScriptedServer.start()
  const sandbox = await sandboxOn(server)
  const record = wireProcess({ stdin: { accepted: 116, open: true } })
  server.on('GET', /processes\/pr/, () => ({ status: 200, json: record }))
  const typed: string[] = []
  const twice = Promise.withResolvers<void>()
  server.onSocket = (peer, frame) => {
    if (frame.channel === 'status') peer.status({ type: 'started', process: record, stdout_offset: 0, stderr_offset: 0, stdin_credit_bytes: 1_000 })
    if (frame.channel === 'stdin' && typed.push(Buffer.from(frame.bytes).toString()) === 2) twice.resolve()
  }
  const attached = await sandbox.attach(record.id, { stdin: true })
  await attached.stdin.write('one')
  await attached.stdin.write('two')
  await twice.promise
  assert.deepEqual(typed, ['one', 'two'])
  assert.equal(server.sockets.length, 1)
  attached.detach()
})

test('a new terminal is a login shell with its size; with a program or an environment it is a start with a terminal', async () => {
  await using server = await ScriptedServer.start()
  const sandbox = await sandboxOn(server)
  const firsts: unknown[] = []
  server.onSocket = (peer, frame) => {
    if (frame.channel !== 'credit' && frame.channel !== 'status') return
    firsts.push(frame.channel === 'status' ? frame.status : frame.channel)
    peer.status({ type: 'exit', process: wireProcess({ state: 'exited', exit_code: 0 }) })
    peer.status({ type: 'started', process: wireProcess(), stdout_offset: 0, stderr_offset: 0, stdin_credit_bytes: 0 })
  }
  for (const cols of [0, 65_535, 1.5, Number.NaN]) await assert.rejects(sandbox.terminal({ cols }), failsWith('invalid_request'), String(cols))
  await sandbox.terminal({ cols: 90, rows: 20, user: 'me', processKey: 'k1' })
  assert.equal(server.sockets[0]?.url, `/v1/sandboxes/${sandbox.id}/terminal?cols=90&rows=20&key=k1&user=me`)
  await sandbox.terminal({ program: { argv: ['top'] }, processKey: 'k2' })
  assert.equal(server.sockets[1]?.url, `/v1/sandboxes/${sandbox.id}/exec`)
  assert.deepEqual(firsts[1], {
    type: 'start',
    process: { argv: ['top'], tty: { cols: 80, rows: 24 }, stdin: true, key: 'k2' },
    credit_bytes: 1024 * 1024,
  })
})

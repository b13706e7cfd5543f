import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Writable } from 'node:stream'
import { test } from 'node:test'
import { ScriptedProcess } from '../../sdk/test/scripted-process.ts'
import { ScriptedSandboxes, wireProcess, wireSandbox } from '../../sdk/test/scripted-sandboxes.ts'
import { problem, ScriptedServer } from '../../sdk/test/scripted-server.ts'
import { COMMANDS } from '../src/commands.ts'
import { type Io, processIo } from '../src/io.ts'
import { OutputPipe } from '../src/output-pipe.ts'
import { program } from '../src/program.ts'
import { run, runInShell, start } from './command-line.ts'

test('without arguments and with --help it says what there is; unknown commands and options are 125', async () => {
  const help = await run(undefined, [])
  assert.equal(help.code, 0)
  for (const word of ['run', 'template ls', 'doctor', '124', '125', '126', '127', '128+n']) assert.ok(help.stdout.includes(word), word)
  assert.doesNotMatch(help.stdout.toString(), /\u001b/)
  const runHelp = await run(undefined, ['run', '--help'])
  assert.match(runHelp.stdout.toString(), /--memory MB/)
  for (const args of [
    ['nope'],
    ['ls', '--nope'],
    ['inspect'],
    ['run'],
    ['run', '--'],
    ['exec', 'box', 'ls'],
    ['run', '--cpu', 'x', '--', 'true'],
    ['cp', 'a', 'b'],
    ['cp', 'a:b', 'c:d'],
  ]) {
    const { code, stdout, stderr } = await run(undefined, args)
    assert.equal(code, 125, args.join(' '))
    assert.equal(stdout.byteLength, 0)
    assert.match(stderr, /^sandglass: [^\n]+\n$/)
  }
})

test('every command refuses an option that it does not have, with 125 and before it does anything', async () => {
  const visible = COMMANDS.filter(({ hidden }) => hidden !== true)
  assert.ok(visible.length > 30)
  const own = processIo()
  for (const { name } of visible) {
    const told = { stdout: '', stderr: '' }
    const into = (stream: keyof typeof told) =>
      new OutputPipe(
        new Writable({
          write(chunk, _encoding, done) {
            told[stream] += String(chunk)
            done()
          },
        }),
      )
    const io: Io = { ...own, stdout: into('stdout'), stderr: into('stderr'), environment: { SANDGLASS_HOME: '/nonexistent' } }
    const code = await program(io, [...name.split(' '), '--surprise'])
    assert.deepEqual({ code, ...told }, { code: 125, stdout: '', stderr: "sandglass: Unknown option '--surprise' (see --help)\n" }, name)
  }
})

test('a mistake is answered with what to type instead', async () => {
  const said: [args: string[], says: RegExp][] = [
    [['extend', 'box', 'abc'], /^sandglass: the time is given as an option: sandglass extend box --ttl SECONDS /],
    [['extend', 'box', '600'], /sandglass extend box --ttl 600 /],
    [['ls', '--api-key-file', '/nofile'], /^sandglass: the file of --api-key-file, \/nofile, is not there; /],
    [['ls', '--api-key-file', '/'], /^sandglass: the file of --api-key-file, \/, cannot be read \(EISDIR\); /],
    [['test', 'no-such', 'nor-such'], /^sandglass: one filter at a time, not no-such and nor-such /],
    [['logs'], /^sandglass: there is no installation in \/nonexistent; start one with `sandglass up`/],
    [['logs', '--follow', 'gateway'], /^sandglass: there is no installation in \/nonexistent; /],
  ]
  for (const [args, says] of said) {
    const { code, stderr } = await run(undefined, args)
    assert.equal(code, 125, args.join(' '))
    assert.match(stderr, says)
  }
})

test('without an installation it says what to type', async () => {
  const { code, stderr } = await run(undefined, ['ls'])
  assert.equal(code, 125)
  assert.match(stderr, /^sandglass: no Sandglass is known here: .*sandglass up.*\[unauthenticated\]\n$/)
})

test('run passes output, errors and the exit code through, and deletes the sandbox', async () => {
  await using server = await ScriptedServer.start()
  const sandboxes = new ScriptedSandboxes(server)
  const stdout = randomBytes(3_000_000)
  new ScriptedProcess(server, { stdout, stderr: Buffer.from('oops\n'), exit: { exit_code: 7 } })
  const finished = await run(server, ['run', '--cpu', '1.5', '--memory', '256', '--ttl', '60', '--env', 'A=b=c', '--', 'x', '--json', '-i'])
  assert.deepEqual([finished.code, finished.signal], [7, null])
  assert.ok(finished.stdout.equals(stdout))
  assert.equal(finished.stderr, 'oops\n')
  assert.deepEqual(JSON.parse(String(server.asked[0]?.body)), { env: { A: 'b=c' }, resources: { vcpu: 1.5, memory_mb: 256 }, ttl_seconds: 60 })
  assert.equal(sandboxes.deleted.size, 1)
})

test('exit codes: signals, timeouts, commands that cannot be started, refusals', async () => {
  await using server = await ScriptedServer.start()
  const sandboxes = new ScriptedSandboxes(server)
  const cases: [number, () => void][] = [
    [137, () => new ScriptedProcess(server, { exit: { exit_code: null, signal: 'KILL' } })],
    [124, () => new ScriptedProcess(server, { exit: { exit_code: null, signal: 'TERM', timed_out: true, duration_ms: 1_000 } })],
  ]
  const refusals: [number, 'executable_not_found' | 'executable_not_runnable' | 'cwd_not_found'][] = [
    [127, 'executable_not_found'],
    [126, 'executable_not_runnable'],
    [125, 'cwd_not_found'],
  ]
  for (const [code, code_name] of refusals) {
    cases.push([
      code,
      () => {
        server.onSocket = (peer) => peer.status({ type: 'error', code: code_name, detail: 'So it is.' })
      },
    ])
  }
  for (const [code, script] of cases) {
    script()
    assert.equal((await run(server, ['run', '--', 'x'])).code, code)
  }
  assert.equal(sandboxes.deleted.size, cases.length)
})

test('a create that is refused prints the sentence and its code', async () => {
  await using server = await ScriptedServer.start()
  server.on('POST', /sandboxes$/, () => problem('unschedulable_never', 'No host can ever fit 999,999 MB of memory (largest: 23,552 MB on host-1).'))
  const { code, stderr } = await run(server, ['run', '--memory', '999999', '--', 'true'])
  assert.equal(code, 125)
  assert.equal(stderr, 'sandglass: no host can ever fit 999,999 MB of memory (largest: 23,552 MB on host-1). Ask for less. [unschedulable_never]\n')
})

for (const [signal, code] of [
  ['SIGINT', 130],
  ['SIGTERM', 143],
] as const) {
  test(`${signal} during run ends the command, deletes the sandbox and exits with ${code}`, async () => {
    await using server = await ScriptedServer.start()
    const sandboxes = new ScriptedSandboxes(server)
    server.on('POST', /signal$/, () => ({ status: 200, json: wireProcess() }))
    const { child, finished } = start(server, ['run', '--', 'sleep', '1000'])
    server.onSocket = (peer, frame) => {
      if (frame.channel !== 'status') return
      peer.status({ type: 'started', process: wireProcess(), stdout_offset: 0, stderr_offset: 0, stdin_credit_bytes: 0 })
      child.kill(signal)
    }
    const { code: seen, stderr } = await finished
    assert.equal(seen, code)
    assert.equal(stderr, '')
    assert.equal(sandboxes.deleted.size, 1)
  })
}

test('Ctrl-C during exec reaches the command as a signal, and its own exit code counts', async () => {
  await using server = await ScriptedServer.start()
  new ScriptedSandboxes(server)
  server.on('GET', /^\/v1\/sandboxes\/box$/, () => ({ status: 200, json: wireSandbox(server, { name: 'box' }) }))
  const { child, finished } = start(server, ['exec', 'box', '--', 'sleep', '1000'])
  server.on('POST', /signal$/, ({ body }) => {
    assert.equal(String(body), '{"signal":"INT"}')
    server.sockets[0]?.status({ type: 'exit', process: wireProcess({ state: 'exited', exit_code: 9 }) })
    return { status: 200, json: wireProcess() }
  })
  server.onSocket = (peer, frame) => {
    if (frame.channel !== 'status') return
    peer.status({ type: 'started', process: wireProcess(), stdout_offset: 0, stderr_offset: 0, stdin_credit_bytes: 0 })
    child.kill('SIGINT')
  }
  assert.equal((await finished).code, 9)
})

test('when the reader of its output goes away, run cleans up', async () => {
  await using server = await ScriptedServer.start()
  const sandboxes = new ScriptedSandboxes(server)
  server.on('POST', /signal$/, () => ({ status: 200, json: wireProcess() }))
  new ScriptedProcess(server, { stdout: randomBytes(20_000_000) })
  const { child, finished } = start(server, ['run', '--', 'yes'])
  child.stdout?.once('data', () => child.stdout?.destroy())
  assert.equal((await finished).code, 141)
  assert.equal(sandboxes.deleted.size, 1)
})

test('exec -i feeds 48 MiB and its end (EX13); without -i nothing is read', async () => {
  await using server = await ScriptedServer.start()
  new ScriptedSandboxes(server)
  server.on('GET', /^\/v1\/sandboxes\/box$/, () => ({ status: 200, json: wireSandbox(server) }))
  const input = randomBytes(48 * 1024 * 1024)
  const script = new ScriptedProcess(server, { waitsForInput: true })
  assert.equal((await run(server, ['exec', 'box', '-i', '--', 'cat'], input)).code, 0)
  assert.equal(script.receivedBytes, input.byteLength)
  assert.ok(Buffer.concat(script.received).equals(input))
  const other = new ScriptedProcess(server, { stdout: Buffer.from('x') })
  assert.equal((await run(server, ['exec', 'box', '--', 'cat'], Buffer.from('input'))).code, 0)
  assert.equal(other.receivedBytes, 0)
})

test('exec -i ends with its command, also when input goes on', async () => {
  await using server = await ScriptedServer.start()
  new ScriptedSandboxes(server)
  server.on('GET', /^\/v1\/sandboxes\/box$/, () => ({ status: 200, json: wireSandbox(server) }))
  new ScriptedProcess(server, { stdout: Buffer.from('first line\n'), stdinCredit: 1_000 })
  const { finished } = start(server, ['exec', 'box', '-i', '--', 'head', '-n1'], randomBytes(10_000_000))
  const { code, stdout, stderr } = await finished
  assert.deepEqual([code, stdout.toString(), stderr], [0, 'first line\n', ''])
})

test('--json of a command is its result as one object, also when it timed out', async () => {
  await using server = await ScriptedServer.start()
  new ScriptedSandboxes(server)
  server.on('GET', /^\/v1\/sandboxes\/box$/, () => ({ status: 200, json: wireSandbox(server) }))
  const result = {
    process_id: 'praaaaaaaaaaaaaaaa',
    exit_code: 3,
    signal: null,
    stdout: '/w==',
    stderr: 'é\n',
    encoding: { stdout: 'base64', stderr: 'utf-8' },
    truncated: false,
    timed_out: false,
    output_open: false,
    duration_ms: 5,
  }
  server.on('POST', /exec$/, () => ({ status: 200, json: result }))
  const finished = await run(server, ['exec', 'box', '--json', '--', 'x'])
  assert.equal(finished.code, 3)
  assert.deepEqual(JSON.parse(finished.stdout.toString()), result)
  const timedOut = { ...result, exit_code: null, signal: 'TERM', timed_out: true }
  server.on('POST', /exec$/, () => ({ status: 200, json: timedOut }))
  const late = await run(server, ['run', '--json', '--timeout', '1', '--', 'x'])
  assert.equal(late.code, 124)
  assert.deepEqual(JSON.parse(late.stdout.toString()), timedOut)
  assert.match(late.stderr, /\[process_timed_out\]\n$/)
})

test('arguments that are not UTF-8 reach the command as they are', async () => {
  await using server = await ScriptedServer.start()
  new ScriptedSandboxes(server)
  const seen: unknown[] = []
  const script = new ScriptedProcess(server, {})
  const answer = server.onSocket
  server.onSocket = (peer, frame) => {
    if (frame.channel === 'status' && frame.status.type === 'start') seen.push(frame.status.process.argv_b64)
    answer(peer, frame)
  }
  // A shell, because Node.js cannot pass such arguments itself.
  const { code } = await runInShell(server, `run -- cat 'a' "$(printf 'b\\377')"`)
  assert.equal(code, 0)
  assert.equal(script.starts, 1)
  assert.deepEqual(seen, [[Buffer.from('cat'), Buffer.from('a'), Buffer.from('b\xff', 'latin1')].map((argument) => argument.toString('base64'))])
})

test('lists: table, --json, --json=lines', async () => {
  await using server = await ScriptedServer.start()
  const item = wireSandbox(server, { name: 'build', expires_at: new Date(Date.now() + 52 * 60_000 + 5_000).toISOString() })
  server.on('GET', /^\/v1\/sandboxes$/, () => ({ status: 200, json: { items: [item, item], next_cursor: null } }))
  const table = (await run(server, ['ls'])).stdout.toString()
  assert.match(table, /^ID +NAME +TEMPLATE +STATUS +ISOLATION +CPU +MEMORY +EXPIRES\n/)
  assert.match(table, /sbl1aaaaaaaaaaaaaaaa +build +base +ready +gvisor +0\.5 +512 MB +in 52 min\n/)
  assert.deepEqual(JSON.parse((await run(server, ['ls', '--json'])).stdout.toString()), [item, item])
  const lines = (await run(server, ['ls', '--json=lines'])).stdout.toString().trimEnd().split('\n')
  assert.deepEqual(
    lines.map((line) => JSON.parse(line)),
    [item, item],
  )
  assert.equal((await run(server, ['ls', '-q'])).stdout.toString(), `${item.id}\n${item.id}\n`)
})

test('inspect says that what was used is of the last run only', async () => {
  await using server = await ScriptedServer.start()
  const times = { created_at: '2026-01-01T00:00:00Z', ready_at: '2026-01-03T00:00:00Z', ended_at: '2026-01-03T00:10:00Z' }
  const stopped = wireSandbox(server, { name: 'box', status: 'stopped', desired: 'stopped', ...times })
  server.on('GET', /^\/v1\/sandboxes\/box$/, () => ({ status: 200, json: stopped }))
  const text = (await run(server, ['inspect', 'box'])).stdout.toString()
  assert.match(text, /^last run used +300 vCPU seconds, 300 GB seconds of memory$/m)
})

test('inspect shows why, create prints an id, rm goes on after a failure', async () => {
  await using server = await ScriptedServer.start()
  new ScriptedSandboxes(server)
  const failed = wireSandbox(server, { status: 'failed', status_reason: 'sandbox_start_failed: the guest \u001b[31mnever answered', env_names: ['A'] })
  server.on('GET', /^\/v1\/sandboxes\/box$/, () => ({ status: 200, json: failed }))
  const text = (await run(server, ['inspect', 'box'])).stdout.toString()
  assert.match(text, /^because +sandbox_start_failed: the guest \\u001b\[31mnever answered$/m)
  assert.match(text, /^evidence +kernel=4\.19\.0-gvisor$/m)
  assert.deepEqual(JSON.parse((await run(server, ['inspect', 'box', '--json'])).stdout.toString()), failed)
  const created = await run(server, ['create'])
  assert.equal(created.stdout.toString(), 'sbl1aaaaaaaaaaaaaaaa\n')
  const removed = await run(server, ['rm', 'sbl1zzzzzzzzzzzzzzzz', 'sbl1aaaaaaaaaaaaaaaa'])
  assert.equal(removed.code, 125)
  assert.equal(removed.stdout.toString(), 'sbl1aaaaaaaaaaaaaaaa\n')
  assert.match(removed.stderr, /\[sandbox_not_found\]\n$/)
})

test('cp: one file to and from, by name, with odd bytes, from standard input and to standard output', async () => {
  await using server = await ScriptedServer.start()
  server.on('GET', /^\/v1\/sandboxes\/box$/, () => ({ status: 200, json: wireSandbox(server) }))
  const info = { name: 'x', path: '/w/x', type: 'file', size: 5, mode: '0640', uid: 0, gid: 0, mtime_ms: 1_000_000 }
  server.on('GET', /stat$/, ({ rawQuery }) => {
    if (/path=\/w(&|$)/.test(rawQuery)) return { status: 200, json: { ...info, type: 'directory' } }
    return rawQuery.includes('missing') ? problem('file_not_found') : { status: 200, json: info }
  })
  server.on('GET', /files$/, () => ({ status: 200, body: 'hello' }))
  server.on('PUT', /files$/, () => ({ status: 201, json: { size: 5, etag: '"1"' } }))
  server.on('PUT', /archive$/, () => ({ status: 200, json: { entries: 1, bytes: 5 } }))
  const directory = await mkdtemp(join(tmpdir(), 'sandglass-cp-'))
  try {
    assert.equal((await run(server, ['cp', 'box:/w/x', join(directory, 'out')])).code, 0)
    assert.equal(await readFile(join(directory, 'out'), 'utf8'), 'hello')
    assert.equal((await run(server, ['cp', 'box:/w/x', '-'])).stdout.toString(), 'hello')
    assert.equal((await run(server, ['cp', '-', 'box:/w/y'], Buffer.from('in'))).code, 0)
    assert.equal(String(server.asked.at(-1)?.body), 'in')
    await writeFile(join(directory, 'src'), 'source')
    assert.equal((await run(server, ['cp', join(directory, 'src'), 'box:/w'])).code, 0)
    const upload = server.asked.at(-1)
    assert.equal(upload?.rawQuery, 'path=/w')
    assert.equal(upload?.body.subarray(0, 4).toString(), 'src\0')
    const missing = await run(server, ['cp', 'box:/w/missing', join(directory, 'never')])
    assert.match(missing.stderr, /\[file_not_found\]\n$/)
    await assert.rejects(readFile(join(directory, 'never')))
    const nowhere = await run(server, ['cp', join(directory, 'src'), 'box:/missing/dir/x'])
    assert.equal(nowhere.code, 125)
    assert.match(nowhere.stderr, /\/missing\/dir does not exist/)
  } finally {
    await rm(directory, { recursive: true })
  }
})

test('a key in a file is used, and never in the arguments', async () => {
  await using server = await ScriptedServer.start()
  server.on('GET', /templates$/, () => ({ status: 200, json: { items: [], next_cursor: null } }))
  const directory = await mkdtemp(join(tmpdir(), 'sandglass-key-'))
  try {
    const path = join(directory, 'key')
    await writeFile(path, `sgk_${'f'.repeat(43)}\n`)
    assert.equal((await run(undefined, ['template', 'ls', '--url', server.url, '--api-key-file', path])).code, 0)
    assert.equal(server.asked[0]?.headers.authorization, `Bearer sgk_${'f'.repeat(43)}`)
    await writeFile(path, 'nonsense')
    assert.equal((await run(undefined, ['template', 'ls', '--url', server.url, '--api-key-file', path])).code, 125)
  } finally {
    await rm(directory, { recursive: true })
  }
})

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { launchProgram } from '../src/processes/launch-program.ts'
import { identify } from '../src/processes/process-table.ts'
import { CommandFailed } from '../src/processes/run-command.ts'
import { until } from './support/until.ts'

const folder = mkdtempSync(join(tmpdir(), 'launch-'))
test.after(() => rmSync(folder, { recursive: true, force: true }))

const shells = (): number[] =>
  execFileSync('ps', ['--ppid', String(process.pid), '-o', 'pid=,args='], { encoding: 'utf8' })
    .split('\n')
    .filter((line) => line.endsWith('/bin/sh -s'))
    .map((line) => Number.parseInt(line, 10))

test('words reach the program as they are, and it has the environment of any command', async () => {
  const words = ["it's", 'a b', '$HOME', '*', '\\c', '', 'two\nlines', '`id`', '&& true']
  const file = join(folder, 'words')
  await launchProgram('sh', ['-c', 'out=$1; shift; printf "%s\\0" "$PATH" "$@" >"$out"', 'sh', file, ...words])
  const [path, ...told] = readFileSync(file, 'utf8').split('\0').slice(0, -1)
  assert.deepEqual(told, words)
  assert.match(path ?? '', /\/usr\/sbin/)
})

test('a program that fails is told with its exit code and what it said', async () => {
  await assert.rejects(launchProgram('sh', ['-c', 'echo went wrong >&2; exit 3']), (error) => {
    assert.ok(error instanceof CommandFailed)
    assert.match(error.message, /^sh -c: exit 3: .*went wrong$/s)
    return true
  })
  await assert.rejects(launchProgram(join(folder, 'not-there'), []), /exit 127/)
})

test('many run at once and each gets its own end', async () => {
  const ends = await Promise.allSettled(Array.from({ length: 40 }, (_, index) => launchProgram('sh', ['-c', `exit ${index % 3}`])))
  assert.deepEqual(
    ends.map(({ status }) => status),
    Array.from({ length: 40 }, (_, index) => (index % 3 === 0 ? 'fulfilled' : 'rejected')),
  )
  assert.equal(shells().length, 1)
})

test('what has ended is collected: no dead process stays', async () => {
  const [shell = 0] = shells()
  const children = (): string => {
    try {
      return execFileSync('ps', ['--ppid', String(shell), '-o', 'pid='], { encoding: 'utf8' })
    } catch {
      return ''
    }
  }
  await until('the shell has no child', () => children() === '' || undefined)
})

test('a signal and the end of its time kill the program, and it is gone when that is told', async () => {
  for (const how of ['signal', 'time'] as const) {
    const mark = join(folder, how)
    const stop = new AbortController()
    const options = how === 'signal' ? { signal: stop.signal } : { timeoutMs: 200 }
    const ended = launchProgram('sh', ['-c', `echo $$ >${mark}; exec sleep 60`], options)
    ended.catch(() => undefined)
    await until(`${how}: it runs`, () => (existsSync(mark) && readFileSync(mark, 'utf8').endsWith('\n')) || undefined)
    const pid = Number(readFileSync(mark, 'utf8'))
    stop.abort(new Error('not needed any more'))
    await assert.rejects(ended, how === 'signal' ? /not needed any more/ : CommandFailed)
    assert.equal(identify(pid), undefined)
  }
  const aborted = AbortSignal.abort(new Error('not needed'))
  await assert.rejects(launchProgram('touch', [join(folder, 'never')], { signal: aborted }), /not needed/)
  assert.equal(existsSync(join(folder, 'never')), false)
})

test('what a program leaves running holds nothing of ours and lives on', async () => {
  const mark = join(folder, 'left')
  await launchProgram('sh', ['-c', `sleep 60 & echo $! >${mark}`], { leavesOthers: true })
  const pid = Number(readFileSync(mark, 'utf8'))
  try {
    const open = [0, 1, 2].map((fd) => execFileSync('readlink', [`/proc/${pid}/fd/${fd}`], { encoding: 'utf8' }).trim())
    assert.deepEqual(open, ['/dev/null', '/dev/null', '/dev/null'])
    const [shell = 0] = shells()
    process.kill(shell, 'SIGKILL')
    await until('the shell is gone', () => identify(shell) === undefined || undefined)
    assert.ok(identify(pid) !== undefined)
  } finally {
    process.kill(pid, 'SIGKILL')
  }
})

test('when the shell is killed, the end of what runs is still told, what came too late fails, and the next program gets a new shell', async () => {
  const [began, go] = [join(folder, 'began'), join(folder, 'go')]
  const running = launchProgram('sh', ['-c', `touch ${began}; until test -e ${go}; do sleep 0.02; done; exit 7`])
  running.catch(() => undefined)
  await until('it runs', () => existsSync(began) || undefined)
  const [shell = 0] = shells()
  process.kill(shell, 'SIGKILL')
  await assert.rejects(launchProgram('true', []), /the shell that starts programs has ended/)
  await launchProgram('true', [])
  writeFileSync(go, '')
  await assert.rejects(running, /exit 7/)
})

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ErrorCode } from '@sandglass/contract/errors'
import { SandglassError } from '@sandglass/sdk'
import { commandOf, formatOf, noMoreThan, operand, parseArguments, parseEnvironment, positiveInteger, SERVER_OPTIONS } from '../src/arguments.ts'
import { familyHelp } from '../src/command-family.ts'
import { COMMANDS, findCommand } from '../src/commands.ts'
import { baseName, type Kind, parseCopySide, planCopy } from '../src/copy-path.ts'
import { DetachKeys } from '../src/detach-keys.ts'
import { exitCodeOfError, exitCodeOfExit } from '../src/exit-code.ts'
import { failureOf } from '../src/failure.ts'
import { exactArguments, lastArguments } from '../src/raw-arguments.ts'
import { renderTable } from '../src/table.ts'
import { bytesText, durationText, plain, shellQuoted } from '../src/text.ts'
import { UsageError } from '../src/usage-error.ts'

test('options end at `--`, short ones can be joined, and what is unknown is named', () => {
  const options = {
    ...SERVER_OPTIONS,
    interactive: { type: 'boolean', short: 'i' },
    tty: { type: 'boolean', short: 't' },
    env: { type: 'string', multiple: true },
  } as const
  const parsed = parseArguments(['box', '-it', '--env', 'A=1', '--env=B=2', '--', 'sh', '-c', '--', '--json'], options)
  assert.deepEqual(parsed.operands, ['box'])
  assert.deepEqual(parsed.command, ['sh', '-c', '--', '--json'])
  assert.deepEqual([parsed.values.interactive, parsed.values.tty, parsed.values.json], [true, true, undefined])
  assert.deepEqual(parsed.values.env, ['A=1', 'B=2'])
  assert.equal(parseArguments([], options).command, undefined)
  assert.throws(() => parseArguments(['--nope'], options), /--nope/)
  assert.throws(() => parseArguments(['--env'], options), UsageError)
  assert.throws(() => commandOf([]), UsageError)
  assert.throws(() => commandOf(undefined), UsageError)
  assert.throws(() => operand([], 0, 'ID'), /ID is missing/)
  assert.throws(() => noMoreThan(['a', 'b'], 1), /'b'/)
})

test('--json and --json=lines', () => {
  assert.equal(formatOf(parseArguments(['--json'], SERVER_OPTIONS).values), 'json')
  assert.equal(formatOf(parseArguments(['--json=lines'], SERVER_OPTIONS).values), 'lines')
  assert.equal(formatOf(parseArguments([], SERVER_OPTIONS).values), 'human')
})

test('numbers and environments', () => {
  assert.equal(positiveInteger('--ttl', '60'), 60)
  for (const bad of ['0', '-1', '1.5', 'x', '', ' ', 'Infinity', '1e400']) assert.throws(() => positiveInteger('--ttl', bad), UsageError, bad)
  assert.deepEqual(parseEnvironment(['A=b=c', 'HOME', 'MISSING', 'EMPTY='], { HOME: '/root' }), { A: 'b=c', HOME: '/root', EMPTY: '' })
  assert.throws(() => parseEnvironment(['=x'], {}), UsageError)
})

test('every command has its own file, a usage that begins with its name, and help', async () => {
  for (const { name, load } of COMMANDS) {
    const { command } = await load()
    assert.ok(command.usage.startsWith(name), name)
    assert.ok(command.help.length > 20, name)
  }
  assert.equal(findCommand(['template', 'ls', '--json'])?.entry.name, 'template ls')
  assert.deepEqual(findCommand(['template', 'ls', '--json'])?.rest, ['--json'])
  assert.equal(findCommand(['template']), undefined)
})

test('exit codes', () => {
  const exit = (exitCode: number | null, signal: string | null, timedOut = false) => exitCodeOfExit({ exitCode, signal, timedOut })
  assert.deepEqual([exit(0, null), exit(42, null), exit(255, null)], [0, 42, 255])
  assert.deepEqual([exit(null, 'KILL'), exit(null, 'TERM'), exit(null, 'INT'), exit(null, 'HUP')], [137, 143, 130, 129])
  assert.equal(exit(null, 'KILL', true), 124)
  assert.equal(exit(null, null), 125)
  assert.deepEqual(
    (['process_timed_out', 'executable_not_runnable', 'executable_not_found', 'unschedulable_never', 'unavailable'] as const).map(exitCodeOfError),
    [124, 126, 127, 125, 125],
  )
})

test('errors are one line with a code and without control characters', () => {
  const error = new SandglassError('unschedulable_never', 'No host can ever fit 999,999 MB of memory (largest: 23,552 MB on host-1).')
  assert.deepEqual(failureOf(error), {
    line: 'sandglass: no host can ever fit 999,999 MB of memory (largest: 23,552 MB on host-1). Ask for less. [unschedulable_never]',
    exitCode: 125,
  })
  assert.equal(
    failureOf(new SandglassError('file_not_found', 'There is no /a\u001b[31m\nb.')).line,
    'sandglass: there is no /a\\u001b[31m\\nb. [file_not_found]',
  )
  assert.deepEqual(failureOf(new UsageError('ID is missing')), { line: 'sandglass: ID is missing (see --help)', exitCode: 125 })
})

test('errors say what to type next, in words of the command line', () => {
  const line = (code: ErrorCode, detail?: string) => failureOf(new SandglassError(code, detail)).line
  assert.equal(line('sandbox_not_found'), 'sandglass: no such sandbox. See `sandglass ls`. [sandbox_not_found]')
  assert.equal(line('template_not_found', 'There is no template x.'), 'sandglass: there is no template x. See `sandglass template ls`. [template_not_found]')
  assert.equal(
    line('sandbox_failed', 'Sandbox failed. runtime_exited: the runtime ended by itself'),
    'sandglass: sandbox failed. runtime_exited: the runtime ended by itself. Start it anew with `sandglass start`, or delete it with `sandglass rm` and create another. [sandbox_failed]',
  )
  assert.match(line('unauthenticated') ?? '', /SANDGLASS_API_KEY or --api-key-file/)
  const own = 'No Sandglass is known here. Run `sandglass up`.'
  assert.equal(line('unauthenticated', own), 'sandglass: no Sandglass is known here. Run `sandglass up`. [unauthenticated]')
})

test('the first word of a command of two shows the others', () => {
  assert.match(familyHelp(['key'], false), /^ {2}key create .*\n {2}key ls .*\n {2}key revoke /)
  assert.equal(familyHelp(['key', '--help'], true), familyHelp(['key'], false))
  assert.throws(() => familyHelp(['key', 'nope'], false), /there is no command 'key nope'; there is key create, key ls, key revoke/)
  assert.throws(() => familyHelp(['nope', '--help'], true), /there is no command 'nope'/)
})

test('tables line up, also with wide characters, and show control characters instead of obeying them', () => {
  const columns = [
    { title: 'NAME', value: (row: readonly string[]) => row[0] ?? '' },
    { title: 'N', value: (row: readonly string[]) => row[1] ?? '', align: 'right' as const },
    { title: 'END', value: (row: readonly string[]) => row[2] ?? '' },
  ]
  assert.equal(renderTable(columns, []), 'NAME  N  END\n')
  assert.equal(
    renderTable(columns, [
      ['日本', '1', 'x'],
      ['e\u0301', '100', '\u001b[2J'],
    ]),
    'NAME    N  END\n日本    1  x\ne\u0301     100  \\u001b[2J\n',
  )
})

test('texts for people', () => {
  assert.deepEqual([0, 1023, 1024, 1536, 252_000_000].map(bytesText), ['0 B', '1023 B', '1.0 KB', '1.5 KB', '240 MB'])
  assert.deepEqual([0, 119_000, 120_000, 7_200_000, 200_000_000].map(durationText), ['0 s', '119 s', '2 min', '2 h', '2 days'])
  assert.equal(shellQuoted(['sh', '-c', "it's $x", '']), `sh -c 'it'\\''s $x' ''`)
  assert.equal(plain('a\tb\u202eb'), 'a\\tb\\u202eb')
})

test('Ctrl-P Ctrl-Q leaves, also split over two reads; a lone Ctrl-P reaches the other side', () => {
  const feed = (...reads: number[][]) => {
    const keys = new DetachKeys()
    const passed: number[] = []
    for (const read of reads) {
      const { pass, detach } = keys.take(Uint8Array.from(read))
      passed.push(...pass)
      if (detach) return { passed, left: true }
    }
    return { passed, left: false }
  }
  assert.deepEqual(feed([0x61, 0x10, 0x11, 0x62]), { passed: [0x61], left: true })
  assert.deepEqual(feed([0x10], [0x11]), { passed: [], left: true })
  assert.deepEqual(feed([0x10], [0x62]), { passed: [0x10, 0x62], left: false })
  assert.deepEqual(feed([0x10, 0x10, 0x11]), { passed: [0x10], left: true })
  assert.deepEqual(feed([0x11, 0x11]), { passed: [0x11, 0x11], left: false })
})

test('arguments keep bytes that are not UTF-8', () => {
  const line = Buffer.from('node\0main.ts\0cp\0a\xff\0\0box:/x\0', 'latin1')
  const raw = lastArguments(line, 4)
  assert.deepEqual(
    raw.map((argument) => Buffer.from(argument).toString('latin1')),
    ['cp', 'a\xff', '', 'box:/x'],
  )
  assert.deepEqual(lastArguments(line, 0), [])
  const exact = exactArguments(['cp', 'a\uFFFD', '', 'box:/x'], raw)
  assert.deepEqual(exact[1], raw[1])
  assert.equal(exact[3], 'box:/x')
})

test('sides of a copy', () => {
  const side = (text: string) => {
    const parsed = parseCopySide(Buffer.from(text, 'latin1'))
    return parsed.type === 'remote'
      ? `${parsed.sandbox} ${parsed.path.toString('latin1')}`
      : parsed.type === 'local'
        ? `local ${parsed.path.toString('latin1')}`
        : parsed.type
  }
  assert.deepEqual(['box:/a', 'box:a', 'box:', './a:b', '/a:b', 'a', '-', 'A:b', 'sbl1aaaaaaaaaaaaaaaa:/\xff', 'box:/a:b'].map(side), [
    'box /a',
    'box /a',
    'box /',
    'local ./a:b',
    'local /a:b',
    'local a',
    'stream',
    'local A:b',
    'sbl1aaaaaaaaaaaaaaaa /\xff',
    'box /a:b',
  ])
  assert.throws(() => side(''), UsageError)
})

test('what a copy becomes: the rules of docker cp', () => {
  const plan = (source: string, sourceKind: Kind, target: string, targetKind: Kind) =>
    planCopy({ path: Buffer.from(source), kind: sourceKind }, { path: Buffer.from(target), kind: targetKind }).toString()
  assert.equal(plan('a', 'file', '/d', 'directory'), '/d/a')
  assert.equal(plan('/x/a', 'file', '/', 'directory'), '/a')
  assert.equal(plan('a', 'file', '/d/b', 'nothing'), '/d/b')
  assert.equal(plan('a', 'file', '/d/b', 'file'), '/d/b')
  assert.equal(plan('t', 'directory', '/d', 'directory'), '/d/t')
  assert.equal(plan('t/', 'directory', '/d/', 'directory'), '/d/t')
  assert.equal(plan('t/.', 'directory', '/d', 'directory'), '/d')
  assert.equal(plan('.', 'directory', '/d', 'directory'), '/d')
  assert.equal(plan('t', 'directory', '/d', 'nothing'), '/d')
  assert.equal(plan('t/.', 'directory', '/d/', 'nothing'), '/d')
  assert.throws(() => plan('a', 'file', '/d/', 'nothing'), /directory|exist/)
  assert.throws(() => plan('a', 'file', '/d/', 'file'), /directory|exist/)
  assert.throws(() => plan('t', 'directory', '/d', 'file'), /directory|exist/)
  assert.throws(() => plan('a', 'nothing', '/d', 'directory'), /directory|exist/)
  assert.equal(baseName(Buffer.from('/a/b//')).toString(), 'b')
  assert.equal(baseName(Buffer.from('/')).toString(), '')
  assert.equal(baseName(Buffer.from('a/..')).toString(), '')
})

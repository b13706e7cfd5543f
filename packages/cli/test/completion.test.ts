/** Completion: read from the help texts, planned, asked for, and typed into real shells. */
import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { wireProcess, wireSandbox } from '../../sdk/test/scripted-sandboxes.ts'
import { ScriptedServer } from '../../sdk/test/scripted-server.ts'
import { wireHost } from '../../sdk/test/wire-host.ts'
import { COMMANDS } from '../src/commands.ts'
import { grammarOf } from '../src/completion/grammar.ts'
import { planCompletion } from '../src/completion/plan.ts'
import { unquote } from '../src/completion/unquote.ts'
import { API_KEY, MAIN, run } from './command-line.ts'

const names = COMMANDS.map(({ name }) => name)
const grammars = new Map(await Promise.all(COMMANDS.map(async ({ name, load }) => [name, grammarOf(name, (await load()).command, true)] as const)))

function plan(line: string) {
  const planned = planCompletion(names, (name) => grammars.get(name) ?? assert.fail(name), line.split(' ').map(unquote))
  return planned
}

test('what a command takes is read from its own words', () => {
  const of = (name: string) => grammars.get(name) ?? assert.fail(name)
  assert.deepEqual([of('cp').operands, of('cp').repeats], [['SRC', 'DST'], false])
  assert.deepEqual([of('rm').operands, of('rm').repeats], [['ID'], true])
  assert.deepEqual([of('exec').operands, of('exec').repeats], [['ID'], false])
  assert.deepEqual([of('kill').operands, of('shell').operands, of('run').operands], [['ID', 'PROCESS'], ['ID'], []])
  assert.deepEqual([of('shell').options.get('--attach'), of('ls').options.get('--status'), of('ls').options.get('--all')], ['PROCESS', 'S', undefined])
  for (const option of ['--template', '--memory', '--interactive', '--json', '--profile']) assert.ok(of('run').options.has(option), option)
})

const PLANS: readonly (readonly [line: string, wanted: object, prefix?: string, lead?: string])[] = [
  ['inspect ', { type: 'sandboxes' }],
  ['inspect bo', { type: 'sandboxes' }, 'bo'],
  ['inspect box ', { type: 'words', words: [] }],
  ['rm box other ', { type: 'sandboxes' }],
  ['stop box other ', { type: 'sandboxes' }],
  ['start ', { type: 'sandboxes' }],
  ['create --restart ', { type: 'words', words: ['never', 'on_host_loss', 'always'] }],
  ['kill box ', { type: 'processes', sandbox: 'box' }],
  ['kill box pr --signal ', { type: 'words', words: ['HUP', 'INT', 'QUIT', 'KILL', 'USR1', 'USR2', 'TERM', 'CONT', 'STOP', 'WINCH'] }],
  ['shell box --attach ', { type: 'processes', sandbox: 'box' }],
  ['run --template ', { type: 'templates' }],
  ['run --template=ba', { type: 'templates' }, 'ba', '--template='],
  ['run --name ', { type: 'words', words: [] }],
  ['run -- ins', { type: 'words', words: [] }, 'ins'],
  ['cp box:/etc/ho', { type: 'remote', sandbox: 'box', typed: '/etc/ho' }, 'box:/etc/ho'],
  ['config use ', { type: 'profiles' }],
  ['key revoke ', { type: 'keys' }],
  ['host drain ', { type: 'hosts' }],
  ['host label one ', { type: 'words', words: ['zone=', 'class='] }],
  ['host label one zone=a cl', { type: 'words', words: ['zone=', 'class='] }, 'cl'],
  ['host ls --status ', { type: 'words', words: ['ready', 'cordoned', 'draining', 'drained', 'lost'] }],
  ['ls --api-key-file ', { type: 'files' }],
  ['ls --profile ', { type: 'profiles' }],
  ['nope ', { type: 'words', words: [] }],
]
for (const [line, wanted, prefix = '', lead = ''] of PLANS) {
  test(`\`${line}\` wants ${JSON.stringify(wanted).slice(0, 60)}`, () => {
    const planned = plan(line)
    assert.deepEqual([planned.wanted, planned.prefix, planned.lead], [[wanted], prefix, lead])
  })
}

test('a copy may go either way; which server is asked is taken from the line', () => {
  assert.deepEqual(plan('cp ').wanted, [{ type: 'files' }, { type: 'places' }])
  assert.deepEqual(plan('inspect --profile work --url=http://x ').server, { profile: 'work', url: 'http://x' })
})

test('quotes and backslashes are the shell’s', () => {
  for (const [typed, word] of [
    ['my\\ file', 'my file'],
    ["'a b", 'a b'],
    ['"a\\"b', 'a"b'],
    ["it'\\'s", 'it\\s'],
  ] as const)
    assert.equal(unquote(typed), word)
})

const ID = 'sbl1aaaaaaaaaaaaaaaa'
const folder = mkdtempSync(join(tmpdir(), 'sandglass-completion-'))
// A shell whose terminal is gone may still write its history.
after(() => rmSync(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 }))

async function scripted(): Promise<ScriptedServer> {
  const server = await ScriptedServer.start()
  const box = wireSandbox(server, { id: ID, name: 'hourglass' })
  server.on('GET', /^\/v1\/hosts$/, () => ({ status: 200, json: { items: [wireHost()], next_cursor: null } }))
  server.on('GET', /^\/v1\/sandboxes$/, () => ({ status: 200, json: { items: [box], next_cursor: null } }))
  server.on('GET', /^\/v1\/sandboxes\/(hourglass|\w+)$/, () => ({ status: 200, json: box }))
  server.on('GET', /\/processes$/, () => ({ status: 200, json: { items: [wireProcess({ id: 'prbbbbbbbbbbbbbbbb' })] } }))
  server.on('GET', /\/files\/list$/, ({ query }) => {
    const entry = (name: string, type: string) => ({ name, path: `/x/${name}`, type, size: 0, mode: '0755', uid: 0, gid: 0, mtime_ms: 0 })
    const etc = [entry('hostname', 'file'), entry('a\nb', 'file')]
    const root = [entry('etc', 'directory'), entry('sand castle', 'file')]
    return { status: 200, json: { items: query.get('path') === '/etc/' ? etc : query.get('path') === '/' ? root : [], next_cursor: null } }
  })
  return server
}

test('candidates: names and ids, processes, places, paths in a sandbox; nothing at all when nobody answers', async () => {
  await using server = await scripted()
  const complete = async (...words: string[]) => (await run(server, ['complete', '--', ...words])).stdout.toString().split('\n').slice(0, -1)
  assert.deepEqual(await complete('inspect', ''), ['hourglass', ID])
  assert.deepEqual(await complete('kill', 'hourglass', 'pr'), ['prbbbbbbbbbbbbbbbb'])
  assert.deepEqual(await complete('host', 'inspect', ''), ['host-1', 'hoaaaaaaaaaaaaaaaa'])
  assert.deepEqual(await complete('host', 'un'), ['uncordon'])
  assert.deepEqual(await complete('cp', 'hour'), [':files', 'hourglass:'])
  assert.deepEqual(await complete('cp', 'hourglass:/'), ['hourglass:/etc/', 'hourglass:/sand castle'])
  assert.deepEqual(await complete('cp', 'hourglass:'), ['hourglass:/etc/', 'hourglass:/sand castle'])
  assert.deepEqual(await complete('cp', 'hourglass:/etc/'), ['hourglass:/etc/hostname'], 'no name with a newline in it')
  const alone = await run(undefined, ['complete', '--', 'inspect', ''])
  assert.deepEqual([alone.code, alone.stdout.toString(), alone.stderr], [0, '', ''])
})

/** A folder with `sandglass` on the path, and nothing else in it but one file. */
function place(): string {
  const bin = join(folder, 'bin')
  mkdirSync(bin, { recursive: true })
  writeFileSync(join(bin, 'sandglass'), `#!/bin/sh\nexec '${process.execPath}' '${MAIN}' "$@"\n`)
  chmodSync(join(bin, 'sandglass'), 0o755)
  const cwd = join(folder, 'cwd')
  mkdirSync(cwd, { recursive: true })
  writeFileSync(join(cwd, 'hours.txt'), '')
  return cwd
}

const LINES: readonly (readonly [typed: string, becomes: string])[] = [
  ['sandglass insp\t', 'sandglass inspect '],
  ['sandglass inspect hour\t', 'sandglass inspect hourglass '],
  ['sandglass inspect sb\t', `sandglass inspect ${ID} `],
  ['sandglass kill hourglass p\t', 'sandglass kill hourglass prbbbbbbbbbbbbbbbb '],
  ['sandglass cp hourgl\t', 'sandglass cp hourglass:'],
  ['sandglass cp hourglass:/e\t', 'sandglass cp hourglass:/etc/'],
  ['sandglass cp hourglass:/etc/h\t', 'sandglass cp hourglass:/etc/hostname '],
  ['sandglass cp hourglass:/sa\t', 'sandglass cp hourglass:/sand\\ castle '],
  ['sandglass cp hours\t', 'sandglass cp hours.txt '],
  ['sandglass run --isolation=gv\t', 'sandglass run --isolation=gvisor '],
]

type Shell = { readonly name: 'bash' | 'zsh'; readonly command: string; readonly load: string }

const SHELLS: readonly Shell[] = [
  { name: 'bash', command: 'bash --norc -i', load: 'source <(sandglass completion bash)' },
  { name: 'zsh', command: 'zsh -f -i', load: 'autoload -Uz compinit && compinit -D && source <(sandglass completion zsh)' },
]

/** The line that a terminal shows: escapes away, and what was written behind a step back replaces what stood there. */
function shownBy(screen: string): string {
  const cells: string[] = []
  let at = 0
  for (const character of screen.replaceAll(/\u001b\[[0-9;?]*[A-Za-z]|\u001b[=>()][A-Z0-9]?|\u0007|\r/g, '')) {
    if (character === '\b') at = Math.max(0, at - 1)
    else {
      cells[at] = character
      at += 1
    }
  }
  return cells.join('')
}

/** Types a line with a Tab in it into an interactive shell; what the line has become. */
async function typed(shell: Shell, server: ScriptedServer, line: string): Promise<string> {
  const cwd = place()
  const child = spawn('script', ['--quiet', '--flush', '--return', '--command', `stty cols 400 rows 50; exec ${shell.command}`, '/dev/null'], {
    cwd,
    stdio: ['pipe', 'pipe', 'inherit'],
    timeout: 60_000,
    killSignal: 'SIGKILL',
    env: {
      PATH: `${join(folder, 'bin')}:${process.env['PATH']}`,
      HOME: folder,
      TERM: 'xterm',
      PS1: 'ready> ',
      SANDGLASS_URL: server.url,
      SANDGLASS_API_KEY: API_KEY,
    },
  })
  try {
    let screen = ''
    const waiting: { test: RegExp; done: () => void }[] = []
    child.stdout.on('data', (chunk: Buffer) => {
      screen += chunk.toString()
      for (const waiter of waiting) if (waiter.test.test(screen)) waiter.done()
    })
    const shows = (test: RegExp): Promise<void> =>
      new Promise((resolve, reject) => {
        const late = setTimeout(() => reject(new assert.AssertionError({ message: `${shell.name} did not show ${test}: ${JSON.stringify(screen)}` })), 20_000)
        const done = () => {
          clearTimeout(late)
          resolve()
        }
        waiting.push({ test, done })
        if (test.test(screen)) done()
      })
    child.stdin.write(`${shell.load}; echo load''ed\n`)
    await shows(/loaded\r?\n[\s\S]*ready> /)
    screen = ''
    // What the line became stands on the screen; a mark typed behind it shows where it ends.
    child.stdin.write(`${line}@@`)
    await shows(/@@/)
    return shownBy(screen)
  } finally {
    child.kill('SIGKILL')
  }
}

const isHere = (name: string): boolean => spawnSync(name, ['--version']).status === 0

for (const shell of SHELLS) {
  test(`${shell.name} completes what is typed`, { timeout: 300_000, skip: isHere(shell.name) ? false : `${shell.name} is not installed` }, async () => {
    await using server = await scripted()
    for (const [line, becomes] of LINES) assert.ok((await typed(shell, server, line)).endsWith(`${becomes}@@`), `${line} becomes ${becomes}`)
  })
}

test('fish is told candidates', { skip: isHere('fish') ? false : 'fish is not installed' }, () => {
  place()
  const lines = 'sandglass completion fish | source; complete -C "sandglass insp"; complete -C "sandglass run --isolation gv"'
  const { stdout } = spawnSync('fish', ['--no-config', '-c', lines], { env: { PATH: `${join(folder, 'bin')}:${process.env['PATH']}`, HOME: folder } })
  assert.equal(stdout.toString(), 'inspect\ngvisor\n')
})

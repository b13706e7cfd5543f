/** The witness itself: a leftover of each kind is planted and must be seen, and a neighbour's things must not. */
import assert from 'node:assert/strict'
import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, rmdirSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { differences, type Installation, inventory, type Thing, unshared } from './leftovers.ts'
import { until } from './persist.ts'

const SANDBOX = 'sbl1abcdefghijklmnop'
const RUNTIME = `${SANDBOX}-g3`

type Undo = () => void | Promise<void>
type Scene = { readonly home: string; readonly name: string; readonly runtime: string }

/** Each makes one leftover and answers how to take it away again. */
const PLANTS: Readonly<Record<Exclude<Thing['kind'], 'record'> | 'process by its group', (scene: Scene) => Promise<Undo> | Undo>> = {
  process: async ({ runtime }) => {
    const child = spawn('sleep', ['300'], { argv0: `runsc-sandbox --root=${runtime}`, stdio: 'ignore' })
    await once(child, 'spawn')
    return () => void child.kill('SIGKILL')
  },
  'process by its group': async ({ name }) => {
    const group = join('/sys/fs/cgroup', existsSync('/sys/fs/cgroup/pids') ? 'pids' : '', `sandglass-${name}`, RUNTIME)
    mkdirSync(group, { recursive: true })
    const child = spawn('sleep', ['300'], { stdio: 'ignore', cwd: '/', env: {} })
    await once(child, 'spawn')
    writeFileSync(join(group, 'cgroup.procs'), String(child.pid))
    return async () => {
      child.kill('SIGKILL')
      await once(child, 'exit')
      await removeGroup(group)
    }
  },
  mount: ({ runtime }) => {
    const point = join(runtime, 'upper')
    mkdirSync(point, { recursive: true })
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=64k', 'tmpfs', point])
    return () => void execFileSync('umount', [point])
  },
  cgroup: ({ name }) => {
    const group = join('/sys/fs/cgroup', existsSync('/sys/fs/cgroup/memory') ? 'memory' : '', `sandglass-${name}`, RUNTIME)
    mkdirSync(group, { recursive: true })
    return () => removeGroup(group)
  },
  netns: ({ name }) => {
    execFileSync('ip', ['netns', 'add', `sandglass-${name}-${RUNTIME}`])
    return () => void execFileSync('ip', ['netns', 'delete', `sandglass-${name}-${RUNTIME}`])
  },
  loop: ({ runtime }) => {
    mkdirSync(runtime, { recursive: true })
    const file = join(runtime, 'disk')
    writeFileSync(file, '')
    truncateSync(file, 1024 * 1024)
    const device = execFileSync('losetup', ['--find', '--show', file], { encoding: 'utf8' }).trim()
    return () => void execFileSync('losetup', ['--detach', device])
  },
  socket: async ({ runtime }) => {
    mkdirSync(runtime, { recursive: true })
    const server = createServer()
    server.listen(join(runtime, 'channel.sock'))
    await once(server, 'listening')
    // Its file is gone, the socket is not.
    rmSync(join(runtime, 'channel.sock'))
    return async () => {
      server.close()
      await once(server, 'close')
    }
  },
  file: ({ runtime }) => {
    mkdirSync(join(runtime, 'bundle'), { recursive: true })
    return () => rmSync(runtime, { recursive: true })
  },
}

async function removeGroup(group: string): Promise<void> {
  await until(30_000, 'the group being empty', () => {
    try {
      rmdirSync(group)
      rmdirSync(join(group, '..'))
    } catch {
      return existsSync(group) ? undefined : true
    }
    return true
  })
}

function scene(): Scene & Disposable {
  const home = mkdtempSync(join(tmpdir(), 'leftovers-'))
  const name = `self${process.pid}`
  return { home, name, runtime: join(home, 'host/run', RUNTIME), [Symbol.dispose]: () => rmSync(home, { recursive: true, force: true }) }
}

describe('a planted leftover is seen', () => {
  for (const [kind, plant] of Object.entries(PLANTS)) {
    test(kind, async () => {
      using place = scene()
      const installation: Installation = { home: place.home, name: place.name }
      assert.deepEqual(inventory(installation), [], 'nothing exists before')
      const undo = await plant(place)
      try {
        const expected = kind === 'process by its group' ? 'process' : kind
        const seen = inventory(installation)
        assert.ok(
          seen.some((thing) => thing.kind === expected && thing.sandbox === SANDBOX),
          `a ${expected} of ${SANDBOX} in ${JSON.stringify(seen)}`,
        )
        assert.ok(differences(seen, new Set()).some((line) => line.startsWith(`left over: ${expected} `)))
        assert.ok(unshared(seen, place.home).length > 0)
        const neighbour: Installation = { home: place.home.slice(0, -1), name: place.name.slice(0, -1) }
        assert.deepEqual(inventory(neighbour), [], 'a neighbour whose names are a beginning of ours sees nothing')
      } finally {
        await undo()
      }
      rmSync(join(place.home, 'host'), { recursive: true, force: true })
      await until(30_000, 'the leftover being gone', () => (inventory(installation).length === 0 ? true : undefined))
    })
  }
})

const whole = (id: string): Thing[] => (['process', 'cgroup', 'netns', 'file', 'record'] as const).map((kind) => ({ kind, what: `${kind} ${id}`, sandbox: id }))

test('the script says it too, and exits with 1', () => {
  using place = scene()
  const script = join(import.meta.dirname, 'leftovers.ts')
  const run = (...args: string[]) => spawnSync(process.execPath, [script, place.home, place.name, ...args], { encoding: 'utf8' })
  assert.equal(run('--live', '').status, 0)
  mkdirSync(join(place.runtime, 'bundle'), { recursive: true })
  const { status, stdout } = run('--live', '')
  assert.deepEqual({ status, stdout }, { status: 1, stdout: `left over: file ${place.runtime}\n` })
  assert.match(run().stdout, new RegExp(`^file +${SANDBOX} ${place.runtime}\n$`))
  assert.match(run('--live', SANDBOX).stdout, new RegExp(`missing: process of ${SANDBOX}`))
})

describe('differences', () => {
  test('a whole live sandbox and a record of an ended one are as they should be', () => {
    const things: Thing[] = [...whole(SANDBOX), { kind: 'record', what: 'x', sandbox: 'sbl1bbbbbbbbbbbbbbbb' }]
    assert.deepEqual(differences(things, new Set([SANDBOX])), [])
  })

  for (const gone of ['process', 'cgroup', 'netns', 'file', 'record'] as const) {
    test(`a live sandbox without its ${gone} is reported`, () => {
      const things = whole(SANDBOX).filter((thing) => thing.kind !== gone)
      assert.deepEqual(differences(things, new Set([SANDBOX])), [`missing: ${gone} of ${SANDBOX}`])
    })
  }

  test('what the installation shares may stay, and nothing else', () => {
    const home = '/srv/home'
    const shared: Thing[] = [
      { kind: 'mount', what: '/srv/home/host/templates/0123456789ab (erofs /dev/loop3)', sandbox: null },
      { kind: 'mount', what: '/srv/home/host/runsc/null-netns (nsfs nsfs)', sandbox: null },
      { kind: 'loop', what: '/dev/loop3 /var/cache/sandglass/templates/base.erofs', sandbox: null },
      { kind: 'cgroup', what: '/sys/fs/cgroup/pids/sandglass-abc', sandbox: null },
      { kind: 'process', what: '12 node host-agent', sandbox: null },
    ]
    assert.deepEqual(unshared(shared, home), [])
    const stray: Thing = { kind: 'mount', what: '/srv/home/host/run/x (tmpfs tmpfs)', sandbox: null }
    assert.deepEqual(unshared([...shared, stray], home), ['left over: mount /srv/home/host/run/x (tmpfs tmpfs)'])
    const orphan: Thing = { kind: 'record', what: '/srv/home/host/sandboxes/x.json', sandbox: SANDBOX }
    assert.equal(unshared([orphan], home).length, 1)
  })
})

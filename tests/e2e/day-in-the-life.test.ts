/**
 * A day in the life, through the command line alone: create from a name, copy a project in, run its tests in the background, watch their
 * output from a second client, leave a terminal and come back to it, copy the results out, see it in `top`, extend it, delete it.
 */
import assert from 'node:assert/strict'
import { mkdir, mkdtemp, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { CreatedApiKeySchema, ProcessSchema, parserOf, SandboxSchema } from '@sandglass/contract'
import { until } from './bounds.ts'
import { BackgroundCommand } from './cli/background.ts'
import { TerminalOfItsOwn } from './cli/terminal-of-its-own.ts'
import { sharedInstallation } from './file-installation.ts'
import { uniqueName } from './fixture.ts'
import { Installation } from './installation.ts'

const sandboxes = parserOf(SandboxSchema)
const processes = parserOf(ProcessSchema)
const keys = parserOf(CreatedApiKeySchema)

/** Tests that keep a CPU busy and write a report; the last one goes on until somebody has seen it, or a minute. */
const PROJECT_TEST = `import json, pathlib, sys, time, unittest
sys.path.insert(0, str(pathlib.Path(__file__).parent / 'src'))
import hourglass
class Hourglass(unittest.TestCase):
    pass
def made(grains):
    def check(self):
        until = time.monotonic() + (60 if grains == 7 else 0.2)
        while time.monotonic() < until and not pathlib.Path('seen').exists():
            hourglass.fall(grains)
        print('checked', grains, flush=True)
        self.assertEqual(hourglass.fall(grains), grains)
    return check
for grains in range(8):
    setattr(Hourglass, f'test_{grains}', made(grains))
if __name__ == '__main__':
    result = unittest.main(exit=False, verbosity=0).result
    pathlib.Path('results').mkdir(exist_ok=True)
    pathlib.Path('results/report.json').write_text(json.dumps({'ran': result.testsRun, 'failed': len(result.failures) + len(result.errors)}))
    sys.exit(0 if result.wasSuccessful() else 1)
`

async function project(): Promise<string> {
  const folder = join(await mkdtemp(join(tmpdir(), 'sandglass-day-')), 'hourglass')
  await mkdir(join(folder, 'src'), { recursive: true })
  await writeFile(join(folder, 'src/hourglass.py'), 'def fall(grains):\n    return sum(1 for _ in range(grains))\n')
  await writeFile(join(folder, 'check.py'), PROJECT_TEST)
  await writeFile(join(folder, 'run'), '#!/bin/sh\ncd "$(dirname "$0")" && exec python3 check.py\n', { mode: 0o755 })
  await symlink('src/hourglass.py', join(folder, 'names are bytes ⏳'))
  return folder
}

const MIB = 1024 * 1024
/** More than an idle one ever uses, and less than a busy one gets on a crowded machine. */
const BUSY_PERCENT = 2

type TopRow = { readonly id: string; readonly cpu_percent: number | null; readonly memory_bytes: number | null }

test('a day in the life', { timeout: 300_000 }, async () => {
  const mine = await sharedInstallation()
  const name = uniqueName()
  const folder = await project()

  // Morning: a sandbox with a name, and the project in it.
  const created = sandboxes.parse(JSON.parse(await mine.ok(['create', '--name', name, '--ttl', '600', '--cpu', '1', '--json'])))
  assert.deepEqual([created.name, created.status], [name, 'ready'])
  await mine.ok(['cp', folder, `${name}:/srv`])
  assert.equal(await mine.ok(['exec', name, '--', 'cat', '/srv/hourglass/names are bytes ⏳']), await readFile(join(folder, 'src/hourglass.py'), 'utf8'))

  // Its tests run in the background; a colleague with a key that only reads watches them from elsewhere.
  const running = processes.parse(JSON.parse(await mine.ok(['exec', name, '--background', '--json', '--', '/srv/hourglass/run'])))
  const { key } = keys.parse(JSON.parse(await mine.ok(['key', 'create', `${name}-reads`, '--role', 'viewer', '--json'])))
  const colleague = new Installation(mine.home, { ...mine.env, SANDGLASS_URL: mine.apiUrl, SANDGLASS_API_KEY: key })
  await using watching = new BackgroundCommand(colleague, ['output', name, running.id, '--follow'])
  await watching.shows(/^checked 0$/m)

  // It is seen at work.
  await until(60_000, 'top shows it at work', async () => {
    const rows: TopRow[] = JSON.parse(await colleague.ok(['top', '--json']))
    const row = rows.find(({ id }) => id === created.id)
    assert.ok(row !== undefined, 'top lists it')
    return (row.cpu_percent ?? 0) > BUSY_PERCENT && (row.memory_bytes ?? 0) > MIB
  })
  assert.match(await colleague.ok(['top', name]), new RegExp(`^${created.id} +${name} +[\\d.]+ % +100 %`, 'm'))

  await mine.ok(['exec', name, '--', 'touch', '/srv/hourglass/seen'])

  // A terminal is left, and found again with what it knew.
  let terminal: string
  {
    await using first = new TerminalOfItsOwn(mine, ['shell', name, '--cwd', '/srv/hourglass'])
    first.type('grains=$((6 * 7)); echo "in $PWD, $grains gr""ains"\n')
    await first.shows(/in \/srv\/hourglass, 42 grains/)
    first.type('\u0010\u0011')
    const left = await first.shows(/left; come back with: sandglass shell \S+ --attach (pr\S+)/)
    assert.equal(await first.ended(), 0)
    terminal = left[1] ?? ''
  }
  {
    await using second = new TerminalOfItsOwn(mine, ['shell', name, '--attach', terminal])
    await second.shows(/in \/srv\/hourglass, 42 grains/)
    second.type('echo "still $grains gr""ains"; exit 3\n')
    await second.shows(/still 42 grains/)
    assert.equal(await second.ended(), 3, 'the exit code of the shell')
  }

  // The colleague saw every line; the results are copied out.
  assert.equal((await watching.ended()).code, 0)
  assert.equal(watching.stdout, Array.from({ length: 8 }, (_, grains) => `checked ${grains}\n`).join(''))
  const ended = JSON.parse(await mine.ok(['ps', name, '--json'])).find((process: { id: string }) => process.id === running.id)
  assert.equal(processes.parse(ended).exit_code, 0)
  await mine.ok(['cp', `${name}:/srv/hourglass/results`, folder])
  assert.deepEqual(JSON.parse(await readFile(join(folder, 'results/report.json'), 'utf8')), { ran: 8, failed: 0 })
  assert.ok((await stat(join(folder, 'results'))).isDirectory())

  // Evening: it may live a little longer; the colleague may not end it; then it goes, and its name is free.
  const longer = sandboxes.parse(JSON.parse(await mine.ok(['extend', name, '--ttl', '3600', '--json'])))
  assert.ok(Date.parse(longer.expires_at) > Date.parse(created.expires_at) + 1_800_000)
  const refused = await colleague.cli(['rm', name])
  assert.equal(refused.code, 125)
  assert.match(refused.stderr, /\[forbidden\]/)
  assert.equal(await mine.ok(['rm', name]), `${created.id}\n`)
  assert.equal((await mine.cli(['inspect', name])).code, 125)
  assert.equal((await mine.ok(['ls'])).includes(created.id), false)
  await rm(join(folder, '..'), { recursive: true })
})

/** The commands of the command line over a whole life: objects as JSON, names in place of ids, processes, files. */
import assert from 'node:assert/strict'
import { chmod, mkdir, mkdtemp, readFile, readlink, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { before, test } from 'node:test'
import { ApiKeySchema, CreatedApiKeySchema, ProcessSchema, parserOf, SandboxSchema, TemplateSchema } from '@sandglass/contract'
import { until } from '../bounds.ts'
import { afterTests, sharedInstallation } from '../file-installation.ts'
import { uniqueName } from '../fixture.ts'
import type { Installation } from '../installation.ts'

const sandboxes = parserOf(SandboxSchema)
const processes = parserOf(ProcessSchema)
const keys = parserOf(ApiKeySchema)
const createdKeys = parserOf(CreatedApiKeySchema)
const templates = parserOf(TemplateSchema)

let installation: Installation
let id: string
const name = uniqueName()

/** The arguments with a flag before the command that is to run inside. */
function withFlag(args: readonly string[], flag: string): string[] {
  const at = args.indexOf('--')
  return at === -1 ? [...args, flag] : [...args.slice(0, at), flag, ...args.slice(at)]
}

/** The objects that a command printed with `--json=lines`. */
async function lines(args: readonly string[]): Promise<unknown[]> {
  const output = await installation.ok(withFlag(args, '--json=lines'))
  return output
    .split('\n')
    .filter((line) => line !== '')
    .map((line): unknown => JSON.parse(line))
}

async function object(args: readonly string[]): Promise<unknown> {
  return JSON.parse(await installation.ok(withFlag(args, '--json')))
}

before(async () => {
  installation = await sharedInstallation()
  const created = sandboxes.parse(await object(['create', '--name', name, '--ttl', '900', '--env', 'GREETING=good day', '--memory', '256', '--cpu', '0.5']))
  id = created.id
  assert.equal(created.status, 'ready')
  assert.equal(created.name, name)
  assert.deepEqual(created.env_names, ['GREETING'])
  assert.equal(JSON.stringify(created).includes('good day'), false, 'values of the environment are never shown')
})
afterTests(() => installation?.cli(['rm', id]))

test('ls shows it as a table and as objects', async () => {
  const table = await installation.ok(['ls'])
  assert.match(table.split('\n')[0] ?? '', /^ID +NAME +TEMPLATE +STATUS +ISOLATION +CPU +MEMORY +EXPIRES/)
  assert.match(table, new RegExp(`^${id} +${name} +base +ready +gvisor`, 'm'))
  assert.ok((await lines(['ls'])).map((item) => sandboxes.parse(item).id).includes(id))
})

test('inspect by name and by id gives the same object', async () => {
  const byName = sandboxes.parse(await object(['inspect', name]))
  const byId = sandboxes.parse(await object(['inspect', id]))
  assert.equal(byName.id, id)
  assert.deepEqual(byName, byId)
  const human = await installation.ok(['inspect', name])
  for (const word of [id, 'ready', 'base', 'gvisor']) assert.ok(human.includes(word), `inspect tells ${word}`)
})

test('exec by name: environment, working directory, user', async () => {
  assert.equal(await installation.ok(['exec', name, '--', 'sh', '-c', 'echo "$GREETING"']), 'good day\n')
  assert.equal(await installation.ok(['exec', name, '--cwd', '/usr/share', '--', 'pwd']), '/usr/share\n')
  assert.equal(await installation.ok(['exec', name, '--user', 'nobody', '--', 'id', '-un']), 'nobody\n')
})

test('a background process: ps, output from an offset, kill', async () => {
  const started = processes.parse(await object(['exec', name, '--background', '--', 'sh', '-c', 'echo first; echo second; exec sleep 1000']))
  const listed = (await lines(['ps', name])).map((item) => processes.parse(item)).find((process) => process.id === started.id)
  assert.equal(listed?.state, 'running')
  await until(30_000, 'its output is there', async () => (await installation.ok(['output', name, started.id])) === 'first\nsecond\n')
  assert.equal(await installation.ok(['output', name, started.id, '--since', '6']), 'second\n')
  await installation.ok(['kill', name, started.id])
  await until(
    10_000,
    'it has ended',
    async () => processes.parse((await lines(['ps', name])).find((item) => processes.parse(item).id === started.id)).state === 'exited',
  )
  const table = await installation.ok(['ps', name])
  assert.ok(table.includes(started.id))
})

test('output --follow goes on to the end of the process', async () => {
  const started = processes.parse(await object(['exec', name, '--background', '--', 'sh', '-c', 'for i in 1 2 3 4 5; do echo $i; sleep 0.2; done']))
  assert.equal(await installation.ok(['output', name, started.id, '--follow']), '1\n2\n3\n4\n5\n')
})

test('cp takes files and trees both ways', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'sandglass-cp-'))
  try {
    const tree = join(folder, 'tree')
    await mkdir(join(tree, 'a/b'), { recursive: true })
    await writeFile(join(tree, 'a/b/data'), Buffer.from([0, 255, 10, 13]))
    await writeFile(join(tree, 'run.sh'), '#!/bin/sh\necho ran\n')
    await chmod(join(tree, 'run.sh'), 0o755)
    await symlink('a/b/data', join(tree, 'link'))
    await installation.ok(['cp', tree, `${name}:/tmp/tree`])
    assert.equal(await installation.ok(['exec', name, '--', '/tmp/tree/run.sh']), 'ran\n')
    assert.equal(await installation.ok(['exec', name, '--', 'readlink', '/tmp/tree/link']), 'a/b/data\n')
    const back = join(folder, 'back')
    await installation.ok(['cp', `${id}:/tmp/tree`, back])
    assert.deepEqual(await readFile(join(back, 'a/b/data')), Buffer.from([0, 255, 10, 13]))
    assert.equal((await stat(join(back, 'run.sh'))).mode & 0o777, 0o755)
    assert.equal(await readlink(join(back, 'link')), 'a/b/data')
    await installation.ok(['cp', join(tree, 'run.sh'), `${name}:/tmp/one`])
    await installation.ok(['cp', `${name}:/tmp/one`, join(folder, 'one')])
    assert.equal(await readFile(join(folder, 'one'), 'utf8'), '#!/bin/sh\necho ran\n')
    await writeFile(join(folder, 'kept'), 'kept')
    const missing = await installation.cli(['cp', `${name}:/no/such`, join(folder, 'kept')])
    assert.equal(missing.code, 125)
    assert.match(missing.stderr, /\[file_not_found\]/)
    assert.equal(await readFile(join(folder, 'kept'), 'utf8'), 'kept')
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
})

test('extend moves the deadline further, never nearer', async () => {
  const first = sandboxes.parse(await object(['inspect', id]))
  const longer = sandboxes.parse(await object(['extend', id, '--ttl', '5000']))
  assert.ok(Date.parse(longer.expires_at) > Date.parse(first.expires_at) + 3_000_000)
  const shorter = sandboxes.parse(await object(['extend', id, '--ttl', '60']))
  assert.equal(shorter.expires_at, longer.expires_at)
})

test('template ls names the base template with its digest', async () => {
  const base = (await lines(['template', 'ls'])).map((item) => templates.parse(item)).find((template) => template.name === 'base')
  assert.match(base?.digest ?? '', /^sha256:[0-9a-f]{64}$/)
})

test('key create, ls and revoke; the secret is shown once', async () => {
  const created = createdKeys.parse(await object(['key', 'create', 'for-a-test']))
  assert.match(created.key, /^sgk_/)
  const works = await installation.cli(['ls'], { env: { SANDGLASS_URL: installation.apiUrl, SANDGLASS_API_KEY: created.key } })
  assert.equal(works.code, 0, works.stderr)
  const listed = await lines(['key', 'ls'])
  assert.ok(listed.map((item) => keys.parse(item).id).includes(created.id))
  assert.equal(JSON.stringify(listed).includes(created.key), false)
  await installation.ok(['key', 'revoke', created.id])
  const refused = await installation.cli(['ls'], { env: { SANDGLASS_URL: installation.apiUrl, SANDGLASS_API_KEY: created.key } })
  assert.equal(refused.code, 125)
  assert.match(refused.stderr, /\[unauthenticated\]/)
  assert.equal(refused.stderr.includes(created.key), false, 'a key is never in an error')
})

test('doctor and status tell how things are', async () => {
  const doctor = await installation.ok(['doctor'])
  assert.match(doctor, /gvisor/i)
  const status = await installation.ok(['status'])
  for (const role of ['postgres', 'control-plane', 'gateway', 'host-agent']) assert.ok(status.includes(role), `status tells of ${role}`)
  JSON.parse(await installation.ok(['status', '--json']))
  JSON.parse(await installation.ok(['doctor', '--json']))
})

test('logs show events and no secret', async () => {
  const logs = await installation.ok(['logs'])
  assert.ok(logs.length > 0)
  assert.equal(logs.includes(installation.operatorKey), false)
  assert.equal(logs.includes('good day'), false)
})

test('rm ends several, by name and by id, and twice is fine', async () => {
  const other = sandboxes.parse(await object(['create', '--ttl', '600', '--memory', '128', '--cpu', '0.1']))
  const named = sandboxes.parse(await object(['create', '--name', `${name}-x`, '--ttl', '600', '--memory', '128', '--cpu', '0.1']))
  await installation.ok(['rm', other.id, `${name}-x`])
  const left = (await lines(['ls'])).map((item) => sandboxes.parse(item).id)
  assert.equal(left.includes(other.id) || left.includes(named.id), false)
  await installation.ok(['rm', other.id])
})

import assert from 'node:assert/strict'
import { appendFileSync, existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { FakeMachine } from './fake-machine.ts'

test('up runs every step once, then becomes the command line', async () => {
  using machine = new FakeMachine()
  const first = await machine.run('up', '--detach')
  assert.equal(first.code, 0, first.stderr)
  assert.equal(first.stdout, `cli ${machine.clone}/packages/cli/src/main.mjs up --detach\n`)
  for (const title of ['Node.js 24.22.0', 'guest agent', 'warden', 'runsc', 'template base']) assert.match(first.stderr, new RegExp(`^  ${title} .* s$`, 'm'))
  assert.ok(existsSync(join(machine.cache, 'bin/runsc')))
  assert.ok(existsSync(join(machine.cache, 'guest-agent/sandglass-guest')))
  assert.ok(existsSync(join(machine.cache, 'warden/sandglass-warden')))
  assert.ok(existsSync(join(machine.cache, 'templates/base.json')))
  assert.deepEqual(readdirSync(join(machine.cache, 'tmp')), [])
})

test('a machine that is to be a host gets what a host needs', async () => {
  using machine = new FakeMachine()
  const { code, stderr } = await machine.run('host', 'join', 'https://control.example:7073')
  assert.equal(code, 0, stderr)
  for (const file of ['bin/runsc', 'guest-agent/sandglass-guest', 'warden/sandglass-warden', 'templates/base.json'])
    assert.ok(existsSync(join(machine.cache, file)), file)
})

test('a second run builds nothing, says nothing and takes less than a second', async () => {
  using machine = new FakeMachine()
  await machine.run('up')
  machine.remove('calls.log')
  const second = await machine.run('up')
  assert.equal(second.stderr, '')
  assert.deepEqual(machine.calls('cargo'), [])
  assert.deepEqual(machine.calls('npm'), [])
  assert.deepEqual(machine.calls('mmdebstrap'), [])
  assert.deepEqual(machine.calls('apt-get'), [])
  assert.ok(second.ms < 1_000, `took ${second.ms} ms`)
})

test('a changed input runs its own step again and no other', async () => {
  using machine = new FakeMachine()
  await machine.run('up')
  machine.remove('calls.log')
  appendFileSync(join(machine.clone, 'native/guest-agent/src/main.rs'), '// changed\n')
  const second = await machine.run('up')
  assert.match(second.stderr, /guest agent/)
  assert.equal(machine.calls('cargo').length, 1)
  assert.deepEqual(machine.calls('mmdebstrap'), [])
  assert.deepEqual(machine.calls('npm'), [])
})

test('a lost artefact is made again although its stamp is there', async () => {
  using machine = new FakeMachine()
  await machine.run('up')
  for (const file of readdirSync(join(machine.cache, 'templates'))) if (file.endsWith('.erofs')) machine.remove(`cache/templates/${file}`)
  const second = await machine.run('up')
  assert.equal(second.code, 0)
  assert.match(second.stderr, /template base/)
})

test('commands other than up, run, test and host join need Node.js and its packages only', async () => {
  using machine = new FakeMachine()
  const listing = await machine.run('ls', '--json')
  assert.equal(listing.stdout, `cli ${machine.clone}/packages/cli/src/main.mjs ls --json\n`)
  assert.deepEqual(machine.calls('cargo'), [])
  const again = await machine.run('ls')
  assert.equal(again.stderr, '')
})

test('nothing but plain text is written without a terminal', async () => {
  using machine = new FakeMachine()
  const outcome = await machine.run('up')
  assert.ok(!outcome.stderr.includes('\u001b'), 'an escape code')
  assert.ok(!outcome.stderr.includes('\r'), 'a carriage return')
})

test('a missing tool is installed by its Debian package, and only that one', async () => {
  using machine = new FakeMachine()
  machine.removeTool('mkfs.erofs', { installable: true })
  const outcome = await machine.run('up')
  assert.equal(outcome.code, 0, outcome.stderr)
  assert.match(outcome.stderr, /Debian packages +erofs-utils/)
  assert.match(machine.calls('apt-get').join('\n'), /install --yes --no-install-recommends erofs-utils$/m)
})

test('what only a lab needs is installed for a lab, and not for an installation', async () => {
  using machine = new FakeMachine()
  machine.removeTool('faketime', { installable: true })
  assert.doesNotMatch((await machine.run('up')).stderr, /faketime/)
  const outcome = await machine.run('lab', 'status')
  assert.equal(outcome.code, 0, outcome.stderr)
  assert.match(outcome.stderr, /Debian packages +faketime/)
})

test('what cannot be had is named, with the one thing to type', async () => {
  using machine = new FakeMachine()
  machine.removeTool('mkfs.erofs', { installable: false })
  const outcome = await machine.run('up')
  assert.equal(outcome.code, 125)
  assert.match(outcome.stderr, /wanted {2}to install: erofs-utils/)
  assert.match(outcome.stderr, /saw {5}[\s\S]*E: Unable to locate package/)
  assert.match(outcome.stderr, /type {4}apt-get update && apt-get install erofs-utils/)
  assert.equal(outcome.stdout, '')
})

test('tests have promtool out of its package, and no Prometheus is installed for it', async () => {
  using machine = new FakeMachine()
  const up = await machine.run('up')
  assert.doesNotMatch(up.stderr, /promtool/)
  const first = await machine.run('test')
  assert.equal(first.code, 0, first.stderr)
  assert.match(first.stderr, /promtool +out of Debian's prometheus/)
  assert.deepEqual(
    machine.calls('apt-get').filter((call) => !call.includes('indextargets')),
    ['apt-get -q -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3 download prometheus'],
  )
  assert.ok(existsSync(join(machine.cache, 'bin/promtool')))
  assert.equal((await machine.run('test')).stderr, '')
})

test('an installed promtool is used', async () => {
  using machine = new FakeMachine()
  machine.addTool('promtool', ':')
  const outcome = await machine.run('test')
  assert.match(outcome.stderr, /promtool +found \//)
  assert.deepEqual(machine.calls('dpkg-deb'), [])
})

test('tests get the cargo that runs, also when everything is installed', async () => {
  using machine = new FakeMachine()
  const proxies = join(machine.folder, 'rustup')
  mkdirSync(proxies)
  for (const tool of ['cargo', 'rustc']) writeFileSync(join(proxies, tool), '#!/bin/sh\nexit 1\n', { mode: 0o755 })
  machine.path.unshift(proxies)
  await machine.run('up')
  const { code, stdout, stderr } = await machine.run('test')
  assert.equal(code, 0, stderr)
  assert.equal(stdout.trim().split('\n').at(-1), join(machine.folder, 'bin/cargo'))
})

test('a cargo that does not run is passed over for the one behind it in PATH', async () => {
  using machine = new FakeMachine()
  const proxies = join(machine.folder, 'rustup')
  mkdirSync(proxies)
  for (const tool of ['cargo', 'rustc']) writeFileSync(join(proxies, tool), '#!/bin/sh\necho "error: no default is configured" >&2\nexit 1\n', { mode: 0o755 })
  machine.path.unshift(proxies)
  const outcome = await machine.run('up')
  assert.equal(outcome.code, 0, outcome.stderr)
  assert.equal(machine.calls('cargo').length, 2, 'one for each crate')
  assert.doesNotMatch(machine.calls('apt-get').join('\n'), /install/)
})

test('an installed runsc at or above the floor is used, an older one is not', async () => {
  using machine = new FakeMachine()
  machine.addTool('runsc', 'case "$1" in --version) echo "runsc version release-20240729.0" ;; *) echo runs ;; esac')
  const old = await machine.run('up')
  assert.match(old.stderr, /runsc +20260905, go install/)
  machine.remove('cache/stamps/runsc')
  machine.addTool('runsc', 'case "$1" in --version) echo "runsc version release-20260905.0" ;; *) echo runs ;; esac')
  const found = await machine.run('up')
  assert.match(found.stderr, /runsc +found \//)
})

test('a runsc that does not run is refused with what it said', async () => {
  using machine = new FakeMachine()
  machine.addTool('runsc', 'case "$1" in --version) echo "runsc version 20260905" ;; *) echo "cannot create gofer process" ;; esac')
  const outcome = await machine.run('up')
  assert.equal(outcome.code, 125)
  assert.match(outcome.stderr, /saw .*does not run a command here: cannot create gofer process/)
})

test('another clone of the same version finds the machine’s artefacts current', async () => {
  using machine = new FakeMachine()
  await machine.run('up')
  machine.remove('calls.log')
  machine.moveClone('elsewhere')
  const outcome = await machine.run('up')
  assert.equal(outcome.code, 0, outcome.stderr)
  for (const tool of ['cargo', 'mmdebstrap']) assert.deepEqual(machine.calls(tool), [])
  assert.deepEqual(
    machine.calls('go').filter((call) => call.startsWith('go install')),
    [],
  )
})

import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { FakeMachine, waitUntilGone } from './fake-machine.ts'

test('a step that fails says what it wanted, what it saw and what to type, and the others keep their work', async () => {
  using machine = new FakeMachine()
  machine.write('fail-cargo', 'warning: noise\nerror: linker `cc` not found\n')
  const outcome = await machine.run('up')
  assert.equal(outcome.code, 125)
  assert.equal(outcome.stdout, '')
  assert.match(outcome.stderr, /guest agent +failed after \d+ s/)
  assert.match(outcome.stderr, /wanted {2}.*sandglass-guest, built from/)
  assert.match(outcome.stderr, /error: linker `cc` not found/)
  assert.match(outcome.stderr, /type {4}cd .*native\/guest-agent && cargo build/)
  assert.doesNotMatch(outcome.stderr, /noise/)
  assert.match(machine.read('cache/log/guest-agent.log'), /noise/)

  machine.remove('fail-cargo')
  machine.remove('calls.log')
  const again = await machine.run('up')
  assert.equal(again.code, 0, again.stderr)
  assert.equal(machine.calls('cargo').length, 2, 'one for each crate')
  assert.deepEqual(machine.calls('mmdebstrap'), [])
})

test('--verbose shows what the tools print and is not passed on, nor taken from the user’s command', async () => {
  using machine = new FakeMachine()
  machine.addTool(
    'cargo',
    'echo "Compiling everything"; mkdir -p target/x86_64-unknown-linux-gnu/release; touch target/x86_64-unknown-linux-gnu/release/sandglass-guest target/x86_64-unknown-linux-gnu/release/sandglass-warden',
  )
  const outcome = await machine.run('up', '--verbose', '--', '--verbose')
  assert.match(outcome.stderr, /Compiling everything/)
  assert.equal(outcome.stdout, `cli ${machine.clone}/packages/cli/src/main.mjs up -- --verbose\n`)
})

test('an interrupt ends the step in hand with all that it started, and the same command goes on', async () => {
  using machine = new FakeMachine()
  machine.write('hold-cargo')
  const { child, ended } = machine.start('up')
  const cargo = await machine.held('cargo')
  child.kill('SIGINT')
  const outcome = await ended
  assert.equal(outcome.code, 130)
  assert.match(outcome.stderr, /interrupted; the same command goes on from here/)
  assert.equal(outcome.stdout, '')
  await waitUntilGone(cargo)
  assert.equal(existsSync(join(machine.cache, 'guest-agent/sandglass-guest')), false)

  machine.remove('hold-cargo')
  const again = await machine.run('up')
  assert.equal(again.code, 0, again.stderr)
  assert.match(again.stderr, /guest agent/)
})

test('a launcher killed outright leaves nothing that stops the next one', async () => {
  using machine = new FakeMachine()
  machine.write('hold-mmdebstrap')
  const { child } = machine.start('up')
  const mmdebstrap = await machine.held('mmdebstrap')
  child.kill('SIGKILL')
  process.kill(mmdebstrap, 'SIGKILL')
  await waitUntilGone(mmdebstrap)

  machine.remove('hold-mmdebstrap')
  const again = await machine.run('up')
  assert.equal(again.code, 0, again.stderr)
  assert.ok(existsSync(join(machine.cache, 'templates/base.json')))
})

test('two launchers do not build at once: the second waits, then finds everything done', async () => {
  using machine = new FakeMachine()
  machine.write('hold-cargo')
  const first = machine.start('up')
  await machine.held('cargo')
  const second = machine.start('up')
  await new Promise<void>((resolve) => second.child.stderr?.once('data', () => resolve()))
  machine.remove('hold-cargo')
  const outcomes = await Promise.all([first.ended, second.ended])
  assert.deepEqual(
    outcomes.map((outcome) => outcome.code),
    [0, 0],
  )
  assert.match(outcomes[1].stderr, /another \.\/sandglass is installing on this machine; waiting for it/)
  assert.equal(machine.calls('cargo').length, 2, 'one for each crate')
})

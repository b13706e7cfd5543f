/** Whose process a pid is, also while it is between two programs. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { test } from 'node:test'
import { belongsToHome, identityOf } from '../src/process-identity.ts'

const LOOKS = 20_000

test('a process that replaces its program is one of its home at each moment, and no other home’s', async () => {
  const script = 'exec sh -c "$0" "$0"'
  const child = spawn('sh', ['-c', script, script], { env: { SANDGLASS_HOME: '/some/home', PATH: process.env['PATH'] ?? '' }, stdio: 'ignore' })
  await once(child, 'spawn')
  try {
    const pid = child.pid ?? 0
    for (let look = 0; look < LOOKS; look += 1) assert.ok(belongsToHome(pid, '/some/home'), `look ${look}`)
    assert.equal(belongsToHome(pid, '/other/home'), false)
    assert.equal(identityOf(pid)?.pid, pid)
  } finally {
    child.kill('SIGKILL')
    await once(child, 'exit')
  }
})

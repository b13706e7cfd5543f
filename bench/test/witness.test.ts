/** What rows are judged by beside times: CPU of processes that come and go, and the look for what a burst left behind. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { test } from 'node:test'
import { Installation } from '../../tests/e2e/installation.ts'
import { endAll } from '../installation/crash-gate.ts'
import { cpuNs } from '../installation/processes.ts'

const NS_PER_MS = 1e6

test('what a child has used counts for its parent when it has ended', () => {
  const before = cpuNs(process.pid)
  const { status } = spawnSync(process.execPath, ['-e', 'let used; do used = process.cpuUsage(); while (used.user + used.system < 300_000)'])
  assert.equal(status, 0)
  assert.ok(cpuNs(process.pid) - before >= 250 * NS_PER_MS)
})

test('a process that is not there has used nothing', () => assert.equal(cpuNs(2 ** 30), 0))

class Unasked extends Installation {
  override sandboxes(): Promise<never> {
    return Promise.reject(new Error('no answer'))
  }
}

test('a look for leftovers that could not be taken is no clean end', async () => {
  assert.deepEqual(await endAll(new Unasked('/nonexistent', {}), [], 0), ['no answer'])
})

/** LI6: zombies pile up under PID 1. */
import assert from 'node:assert/strict'
import { must, until } from '../bounds.ts'
import { defineCase } from '../case.ts'
import { sandboxed } from '../fixture.ts'
import { processesInside } from '../subject/inside.ts'
import type { Sandboxed } from '../subject/sandboxed.ts'

const COUNT = { full: 1_000, small: 40 } as const
const PARALLEL = 20

/** A child that ends while its living parent never asks for it: a true zombie. */
const ZOMBIE = 'import os, time\nif os.fork() == 0: os._exit(0)\ntime.sleep(60)'

defineCase<Sandboxed>({
  id: 'LI6',
  title: `no zombie is left after ${COUNT.full} orphans`,
  subject: sandboxed,
  timeoutMs: 300_000,
  async run(sandbox, size) {
    for (let done = 0; done < COUNT[size]; done += PARALLEL) {
      const outcomes = await Promise.all(
        Array.from({ length: PARALLEL }, () => must('an orphaning command', sandbox.exec({ argv: ['sh', '-c', 'sleep 0.1 &'] }))),
      )
      assert.ok(outcomes.every((outcome) => outcome.exitCode === 0))
    }
    let left: unknown = []
    await until(size === 'full' ? 30_000 : 15_000, 'no zombie and no orphan is left', async () => {
      const found = (await processesInside(sandbox)).filter((process) => process.state === 'Z' || process.command.startsWith('sleep 0.1'))
      left = found
      return found.length === 0
    }).catch((error: unknown) => {
      assert.fail(`${error instanceof Error ? error.message : ''} Left: ${JSON.stringify(left)}`)
    })
    const running = (await sandbox.processes()).filter((process) => process.state === 'running')
    assert.deepEqual(running, [], 'the list shows nothing running.')
  },
  defects: {
    'one child is never reaped': {
      breaks: (real) => {
        let made = false
        return {
          ...real,
          async exec(command) {
            if (!made && command.argv?.[0] === 'sh') {
              made = true
              await real.exec({ argv: ['sh', '-c', `setsid python3 -c '${ZOMBIE}' >/dev/null 2>&1 &`] })
            }
            return real.exec(command)
          },
        }
      },
      says: /no zombie and no orphan is left: still not so.*"state":"Z"/,
    },
    'ended commands stay listed as running': {
      breaks: (real) => ({ ...real, processes: async () => (await real.processes()).map((process) => ({ ...process, state: 'running' as const })) }),
      says: /the list shows nothing running/,
    },
  },
})

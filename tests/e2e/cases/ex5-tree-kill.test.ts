/** EX5: a kill that reported success while descendants lived on and held the port. */
import assert from 'node:assert/strict'
import { randomInt } from 'node:crypto'
import { must, until, within } from '../bounds.ts'
import { defineCase } from '../case.ts'
import { sandboxed } from '../fixture.ts'
import { text } from '../subject/bytes.ts'
import { refused } from '../subject/coded.ts'
import { processesInside } from '../subject/inside.ts'
import type { Sandboxed } from '../subject/sandboxed.ts'

/** Children that leave the group, the session, ignore SIGTERM, and one that listens. `mark` tells them from those of another run. */
const tree = (mark: string): string[] => [
  'sh',
  '-c',
  `sleep 300.${mark} & setsid sleep 300.${mark} & (trap "" TERM; sleep 300.${mark}; sleep 300.${mark}) & nohup python3 -m http.server 9000 >/dev/null 2>&1 & ` +
    `(setsid sh -c 'sleep 300.${mark} & sleep 300.${mark} & exit 0' &) ; wait`,
]

const BIND =
  'import socket; s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1); s.bind(("127.0.0.1", 9000)); s.listen(); print("free")'
const CONNECT = 'import socket; s = socket.socket(); s.settimeout(1); print(s.connect_ex(("127.0.0.1", 9000)))'

async function nothingLeft(sandbox: Sandboxed, mark: string, after: string): Promise<void> {
  const left = (await processesInside(sandbox)).filter((process) => process.command.includes(`300.${mark}`) || process.command.includes('http.server'))
  assert.deepEqual(left, [], `descendants live on after ${after}.`)
  const bind = await must('binding the port', sandbox.exec({ argv: ['python3', '-c', BIND], timeoutMs: 20_000 }))
  assert.equal(text(bind.stdout), 'free\n', `the port is free after ${after}.`)
  assert.equal((await must('the next command', sandbox.exec({ argv: ['true'] }))).exitCode, 0)
}

defineCase<Sandboxed>({
  id: 'EX5',
  title: 'a timeout and a kill end the whole tree, and the port is free',
  subject: sandboxed,
  async run(sandbox) {
    const first = String(randomInt(1e8))
    const timed = refused('the tree', 'process_timed_out', sandbox.exec({ argv: tree(first), timeoutMs: 1_000, killGraceMs: 300 }))
    await within(30_000, 'the timeout of the tree', timed)
    await nothingLeft(sandbox, first, 'the timeout')

    const second = String(randomInt(1e8))
    const running = await must('starting the tree', sandbox.spawn({ argv: tree(second), killGraceMs: 300 }))
    await until(30_000, 'the server inside listens', async () => text((await sandbox.exec({ argv: ['python3', '-c', CONNECT] })).stdout) === '0\n')
    await must('killing the tree', sandbox.kill(running.id, 'KILL'))
    const exit = await within(30_000, 'the exit after a kill', running.exit)
    assert.equal(exit.signal, 'KILL')
    await nothingLeft(sandbox, second, 'the kill')
  },
  defects: {
    'a timeout kills only the leader and its group': {
      breaks: (real) => ({
        ...real,
        async exec(command) {
          const mark = /300\.(\d+)/.exec(command.argv?.[2] ?? '')?.[1]
          try {
            return await real.exec(command)
          } finally {
            if (mark !== undefined) await real.exec({ argv: ['sh', '-c', `setsid sleep 300.${mark} >/dev/null 2>&1 </dev/null &`] })
          }
        },
      }),
      says: /descendants live on after the timeout/,
    },
    'the port stays held': {
      breaks: (real) => ({
        ...real,
        async exec(command) {
          try {
            return await real.exec(command)
          } finally {
            // Under another name, so that only the port gives it away.
            if (command.timeoutMs === 1_000) {
              const hold = BIND.replace('print("free")', 'import time; time.sleep(20)')
              await real.spawn({ argv: ['python3', '-c', hold] })
              await until(30_000, 'the port is held', async () => text((await real.exec({ argv: ['python3', '-c', CONNECT] })).stdout) === '0\n')
            }
          }
        },
      }),
      says: /the port is free after the timeout/,
    },
    'a kill reaches nobody': {
      breaks: (real) => ({
        ...real,
        async spawn(command) {
          const running = await real.spawn(command)
          return { ...running, exit: Promise.resolve({ processId: running.id, exitCode: null, signal: 'KILL', timedOut: false, outputOpen: false }) }
        },
        kill: async () => {},
      }),
      says: /descendants live on after the kill/,
    },
  },
})

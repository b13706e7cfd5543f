/** LI2: sandboxes vanish from the list after a restart. */
import assert from 'node:assert/strict'
import { must, until } from '../bounds.ts'
import { defineCase } from '../case.ts'
import { type Restartable, restartable } from '../fixture.ts'
import { text } from '../subject/bytes.ts'
import type { Sandboxed, Terminal } from '../subject/sandboxed.ts'
import { Screen } from '../subject/screen.ts'

const COUNT = { full: 20, small: 2 } as const
const COUNTER = 'n=0; while :; do n=$((n+1)); echo $n; sleep 0.1; done'

type Lived = {
  readonly id: string
  readonly name: string
  readonly sandbox: Sandboxed
  readonly processId: string
  readonly pid: number
  readonly terminal: Terminal
  readonly screen: Screen
}

async function begin({ platform, name }: Restartable, index: number): Promise<Lived> {
  const seen = await must('creating', platform.create({ name: `${name}-${index}`, vcpu: 0.1, memoryMb: 128 }))
  const sandbox = await must('entering', platform.enter(seen.id))
  const { id: processId } = await must('a counter', sandbox.spawn({ argv: ['sh', '-c', COUNTER] }))
  const listed = (await sandbox.processes()).find((process) => process.id === processId)
  const terminal = await must('a terminal', sandbox.terminal({ cols: 80, rows: 24, argv: ['/bin/sh'] }))
  const screen = new Screen(terminal)
  await terminal.write('mine=kept; echo rea""dy\n')
  await screen.shows(/ready/, 20_000)
  return { id: seen.id, name: `${name}-${index}`, sandbox, processId, pid: listed?.pid ?? 0, terminal, screen }
}

const last = (bytes: Uint8Array): number => Number(text(bytes).trim().split('\n').at(-1))

async function livesOn({ platform }: Restartable, lived: Lived, before: number): Promise<void> {
  const sandbox = await must('entering after the restart', platform.enter(lived.id))
  const process = (await must('listing processes', sandbox.processes())).find(({ id }) => id === lived.processId)
  assert.equal(process?.state, 'running', 'the process lives on.')
  assert.equal(process.pid, lived.pid, 'it is the same process.')
  await until(20_000, 'the counter goes on', async () => last(await sandbox.output(lived.processId, 'stdout', 0)) > before)
  const lines = text(await sandbox.output(lived.processId, 'stdout', 0))
    .trim()
    .split('\n')
  assert.deepEqual(
    lines,
    lines.map((_, index) => String(index + 1)),
    'no line of its output is lost or doubled.',
  )
  const terminal = await must('coming back to the terminal', sandbox.terminal({ id: lived.terminal.id, since: lived.screen.end }))
  const screen = new Screen(terminal)
  await terminal.write('echo still $mine\n')
  await screen.shows(/still kept/, 20_000)
  await terminal.detach()
}

defineCase<Restartable>({
  id: 'LI2',
  title: `${COUNT.full} sandboxes, their processes and terminals live through a restart of the platform`,
  subject: restartable,
  timeoutMs: 400_000,
  async run(subject, size) {
    const { platform } = subject
    const lived: Lived[] = []
    for (let index = 0; index < COUNT[size]; index += 1) lived.push(await begin(subject, index))
    const counted = await Promise.all(lived.map(async ({ sandbox, processId }) => last(await sandbox.output(processId, 'stdout', 0))))
    const idsBefore = lived.map(({ id }) => id).sort()
    await must('the restart', subject.restart())
    const listed = await must('listing after the restart', platform.list())
    assert.deepEqual(listed.map(({ id }) => id).sort(), idsBefore, 'the same sandboxes are listed after the restart.')
    assert.deepEqual([...new Set(listed.map(({ status }) => status))], ['ready'], 'all of them are ready.')
    for (const [index, one] of lived.entries()) {
      assert.equal((await platform.get(one.name)).id, one.id, 'names lead to the same ids')
      await livesOn(subject, one, counted[index] ?? 0)
    }
    for (const { id } of lived) await platform.remove(id)
    assert.deepEqual(await platform.list(), [], 'all of them can be deleted.')
  },
  defects: {
    'the list is empty after a restart': {
      breaks: (real) => {
        let restarted = false
        return {
          ...real,
          async restart() {
            await real.restart()
            restarted = true
          },
          platform: { ...real.platform, list: async () => (restarted ? [] : real.platform.list()) },
        }
      },
      says: /the same sandboxes are listed after the restart/,
    },
    'sandboxes are started anew': {
      breaks: (real) => ({
        ...real,
        async restart() {
          for (const { id } of await real.platform.list()) {
            const sandbox = await real.platform.enter(id)
            for (const process of await sandbox.processes()) if (process.state === 'running') await sandbox.kill(process.id, 'KILL')
          }
          await real.restart()
        },
      }),
      says: /the process lives on/,
    },
    'the terminal is a new one': {
      breaks: (real) => ({
        ...real,
        platform: {
          ...real.platform,
          async enter(id) {
            const sandbox = await real.platform.enter(id)
            return {
              ...sandbox,
              terminal: ({ id: known, ...options }) => sandbox.terminal(known === undefined ? options : { cols: 80, rows: 24, argv: ['/bin/sh'] }),
            }
          },
        },
      }),
      says: /still kept\/ did not show/,
    },
    'output before the restart is lost': {
      breaks: (real) => {
        let restarted = false
        return {
          ...real,
          async restart() {
            await real.restart()
            restarted = true
          },
          platform: {
            ...real.platform,
            async enter(id) {
              const sandbox = await real.platform.enter(id)
              if (!restarted) return sandbox
              return { ...sandbox, output: async (process, stream, since) => (await sandbox.output(process, stream, since)).subarray(2) }
            },
          },
        }
      },
      says: /no line of its output is lost or doubled/,
    },
  },
})

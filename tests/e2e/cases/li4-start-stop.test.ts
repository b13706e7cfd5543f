/** LI4: starting twice makes two supervisors. */
import assert from 'node:assert/strict'
import { must, until } from '../bounds.ts'
import { defineCase } from '../case.ts'
import { type Stoppable, stoppable } from '../stoppable.ts'
import { text } from '../subject/bytes.ts'
import { Coded, codeOf, refused } from '../subject/coded.ts'
import { ask } from '../subject/inside.ts'

const AT_ONCE = { full: 8, small: 3 } as const
const FILE = '/workspace/written'

const several = <T>(count: number, call: (index: number) => Promise<T>): Promise<T[]> => Promise.all(Array.from({ length: count }, (_, index) => call(index)))
const bootIdOf = async ({ sandbox }: Stoppable): Promise<string> => await ask(sandbox, { argv: ['cat', '/proc/sys/kernel/random/boot_id'] })

async function runs(subject: Stoppable, count: number, when: string): Promise<void> {
  await until(20_000, 'the runtimes', () => subject.runtimes().length === count).catch(() =>
    assert.equal(subject.runtimes().length, count, `${count} runtimes serve it ${when}.`),
  )
}

/** Refused with what to do about it. */
async function saysWhatToDo({ sandbox }: Stoppable): Promise<void> {
  const said = await sandbox.exec({ argv: ['true'] }).then(
    () => undefined,
    (error: unknown) => error,
  )
  assert.equal(codeOf(said), 'sandbox_stopped', 'a command in a stopped sandbox is refused as that.')
  assert.match(said instanceof Error ? said.message : '', /start/i, 'the refusal says what to do.')
}

defineCase<Stoppable>({
  id: 'LI4',
  title: 'start, stop and delete, twice and at the same time: never two runtimes, and a start begins with a fresh machine',
  subject: stoppable,
  async run(subject, size) {
    const { sandbox, seen, stop, start, remove } = subject
    const first = await seen()
    await must('a file', sandbox.files.write(FILE, new Uint8Array(10)))
    const bootId = await bootIdOf(subject)
    await runs(subject, 1, 'when it is ready')

    for (const { status, generation, writableLayer } of await must('stopping at the same time', several(AT_ONCE[size], stop))) {
      assert.deepEqual([status, generation, writableLayer], ['stopped', first.generation + 1, 'gone'], 'stops at the same time are one stop.')
    }
    assert.equal((await must('stopping twice', stop())).generation, first.generation + 1, 'a second stop changes nothing.')
    await runs(subject, 0, 'when it is stopped')
    await saysWhatToDo(subject)

    const started = await must('starting at the same time', several(AT_ONCE[size], start))
    for (const { status } of started) assert.equal(status, 'ready', 'a start that was waited for is ready.')
    const generations = new Set(started.map(({ generation }) => generation))
    assert.equal(generations.size, 1, 'starts at the same time are one start.')
    assert.equal((await must('starting twice', start())).generation, started[0]?.generation, 'a second start changes nothing.')
    await runs(subject, 1, 'after starts at the same time')
    assert.notEqual(await bootIdOf(subject), bootId, 'a start is a fresh boot.')
    await refused('reading what was written before the stop', 'file_not_found', sandbox.files.read(FILE))
    assert.equal(text((await must('a command', sandbox.exec({ argv: ['echo', 'again'] }))).stdout), 'again\n')

    await Promise.allSettled(Array.from({ length: AT_ONCE[size] }, (_, index) => (index % 2 === 0 ? stop() : start())))
    const settled = await until(60_000, 'the race is over', async () => {
      const now = await seen()
      return ['ready', 'stopped'].includes(now.status) ? now : undefined
    })
    await runs(subject, settled.status === 'ready' ? 1 : 0, 'after starts and stops at the same time')

    await must('deleting at the same time', several(2, remove))
    await refused('starting what is deleted', 'sandbox_ended', start())
    await refused('stopping what is deleted', 'sandbox_ended', stop())
    await runs(subject, 0, 'when it is deleted')
  },
  defects: {
    'starting at the same time makes two runtimes': {
      breaks: (real) => {
        let starts = 0
        return {
          ...real,
          async start() {
            starts += 1
            return await real.start()
          },
          runtimes: () => (starts > 1 ? [...real.runtimes(), 4_194_303] : real.runtimes()),
        }
      },
      says: /1 runtimes serve it after starts at the same time/,
    },
    'a stop leaves its runtime alive': {
      breaks: (real) => {
        let stopped = false
        return {
          ...real,
          async stop() {
            stopped = true
            return await real.stop()
          },
          runtimes: () => (stopped ? [...real.runtimes(), 4_194_303] : real.runtimes()),
        }
      },
      says: /0 runtimes serve it when it is stopped/,
    },
    'each of two stops is a stop of its own': {
      breaks: (real) => {
        let more = 0
        return {
          ...real,
          async stop() {
            const run = await real.stop()
            return { ...run, generation: run.generation + more++ }
          },
        }
      },
      says: /stops at the same time are one stop/,
    },
    'stopping twice is an error': {
      breaks: (real) => {
        let stops = 0
        return {
          ...real,
          stop() {
            stops += 1
            return stops > AT_ONCE.small ? Promise.reject(new Coded('sandbox_not_ready')) : real.stop()
          },
        }
      },
      says: /stopping twice failed/,
    },
    'a stopped sandbox refuses without a way out': {
      breaks: (real) => ({
        ...real,
        sandbox: { ...real.sandbox, exec: (command) => real.sandbox.exec(command).catch(() => Promise.reject(new Coded('sandbox_not_ready'))) },
      }),
      says: /a command in a stopped sandbox is refused as that/,
    },
    'a start finds the machine as it was': {
      breaks: (real) => {
        let known: Awaited<ReturnType<typeof real.sandbox.exec>> | undefined
        return {
          ...real,
          sandbox: {
            ...real.sandbox,
            async exec(command) {
              if (command.argv?.[1]?.endsWith('boot_id') !== true) return await real.sandbox.exec(command)
              known ??= await real.sandbox.exec(command)
              return known
            },
          },
        }
      },
      says: /a start is a fresh boot/,
    },
    'what was written comes back with a start': {
      breaks: (real) => ({ ...real, sandbox: { ...real.sandbox, files: { ...real.sandbox.files, read: async () => new Uint8Array(10) } } }),
      says: /reading what was written before the stop succeeded/,
    },
    'a deleted sandbox can be started': {
      breaks: (real) => {
        let last: Awaited<ReturnType<typeof real.start>> | undefined
        return {
          ...real,
          async start() {
            try {
              last = await real.start()
            } catch (error) {
              if (codeOf(error) !== 'sandbox_ended' || last === undefined) throw error
            }
            return last
          },
        }
      },
      says: /starting what is deleted succeeded/,
    },
  },
})

/** EX1: a stream ended with "complete, exit 0" while its process still ran. */
import assert from 'node:assert/strict'
import { must, until, within } from '../bounds.ts'
import { defineCase } from '../case.ts'
import type { Place } from '../cut-connections.ts'
import { type Cuttable, cuttable } from '../cuttable.ts'
import { text } from '../subject/bytes.ts'
import { refused } from '../subject/coded.ts'
import type { StreamedEvent } from '../subject/event-stream.ts'

const LINES = { full: 60, small: 12 } as const
const PLACES: readonly Place[] = ['gateway-host', 'host-guest']
/** Longer than the streams that are cut. */
const LIMIT_MS = 30_000

const counter = (lines: number): string => `for i in $(seq ${lines}); do echo $i; sleep .2; done`

/** The events of a stream so far. */
function watched(events: AsyncIterable<StreamedEvent>): { readonly seen: StreamedEvent[]; readonly done: Promise<void> } {
  const seen: StreamedEvent[] = []
  const done = (async () => {
    for await (const event of events) seen.push(event)
  })()
  done.catch(() => undefined)
  return { seen, done }
}

/** One stream, cut once: it says that contact was lost, and its process goes on. */
async function explicitLoss({ sandbox, events, once, cut }: Cuttable, place: Place): Promise<void> {
  const stream = watched(events('echo here; sleep 25; echo there'))
  const answer = refused(`a command that was cut (${place})`, 'lost_contact', once('sleep 25'))
  answer.catch(() => undefined)
  await until(LIMIT_MS, 'the first output', () => stream.seen.some(({ name }) => name === 'stdout'))
  await until(LIMIT_MS, 'the command without a stream', async () => (await sandbox.processes()).filter(({ state }) => state === 'running').length >= 2)
  assert.ok(cut(place) > 0, `a connection was cut (${place}).`)
  await within(LIMIT_MS, `the end of a stream that was cut (${place})`, stream.done)
  const names = stream.seen.map(({ name }) => name)
  assert.equal(names.includes('exit'), false, `a stream that was cut (${place}) says no exit.`)
  const last = stream.seen.at(-1)
  assert.equal(last?.name, 'error', `a stream that was cut (${place}) ends with an error, not with ${last?.name}.`)
  assert.match(last.data, /"lost_contact"/, `the error of a stream that was cut (${place}) is lost contact.`)
  await within(LIMIT_MS, `the answer of a command that was cut (${place})`, answer)
  const left = await must('listing processes', sandbox.processes())
  const mine = left.filter(({ state }) => state === 'running')
  assert.ok(mine.length >= 2, 'the processes of streams that were cut go on.')
  for (const { id } of mine) await sandbox.kill(id, 'KILL').catch(() => undefined)
}

/** One stream through both cuts: every line once, and the exit after the last. */
async function reattached({ sandbox, cut }: Cuttable, lines: number): Promise<void> {
  const running = await must('starting the counter', sandbox.spawn({ shell: counter(lines) }))
  let printed = ''
  const read = (async () => {
    for await (const chunk of running.stdout) printed += text(chunk)
  })()
  read.catch(() => undefined)
  const seen = (): number => printed.split('\n').length - 1
  let exited = false
  running.exit.then(
    () => {
      exited = true
    },
    () => undefined,
  )
  for (const [index, place] of PLACES.entries()) {
    await until(LIMIT_MS, `a line before the cut (${place})`, () => seen() >= Math.ceil((lines * (index + 1)) / 4))
    assert.ok(cut(place) > 0, `a connection was cut (${place}).`)
    assert.equal(exited, false, 'a process that runs has no exit.')
  }
  const exit = await must('the counter', within(LIMIT_MS, 'the exit of the counter', running.exit))
  await must('reading the counter', within(LIMIT_MS, 'the end of its output', read))
  assert.deepEqual(
    printed.trimEnd().split('\n'),
    Array.from({ length: lines }, (_, index) => String(index + 1)),
    'every line comes once, through both cuts.',
  )
  assert.equal(exit.exitCode, 0)
}

defineCase<Cuttable>({
  id: 'EX1',
  title: 'a stream that is cut comes back or says that contact was lost; it never ends as a success',
  subject: cuttable,
  async run(subject, size) {
    await reattached(subject, LINES[size])
    for (const place of size === 'full' ? PLACES : PLACES.slice(0, 1)) await explicitLoss(subject, place)
  },
  defects: {
    'a cut is told as exit 0': {
      breaks: (real) => ({
        ...real,
        async *events(shell) {
          for await (const event of real.events(shell)) yield event.name === 'error' ? { name: 'exit', data: '{"exit_code":0}' } : event
        },
      }),
      says: /says no exit/,
    },
    'a cut is told by silence': {
      breaks: (real) => ({
        ...real,
        async *events(shell) {
          for await (const event of real.events(shell)) if (event.name !== 'error') yield event
        },
      }),
      says: /ends with an error, not with/,
    },
    'a command that was cut has succeeded': {
      breaks: (real) => ({ ...real, once: (shell) => real.once(shell).catch(() => undefined) }),
      says: /a command that was cut \(gateway-host\) succeeded/,
    },
    'coming back repeats a line': {
      breaks: (real) => {
        let cuts = 0
        return {
          ...real,
          cut(place) {
            cuts += 1
            return real.cut(place)
          },
          sandbox: {
            ...real.sandbox,
            async spawn(command) {
              const running = await real.sandbox.spawn(command)
              const repeating = async function* (): AsyncGenerator<Uint8Array> {
                let repeated = 0
                for await (const chunk of running.stdout) {
                  if (repeated < cuts) yield chunk
                  repeated = cuts
                  yield chunk
                }
              }
              return { ...running, stdout: repeating() }
            },
          },
        }
      },
      says: /every line comes once, through both cuts/,
    },
    'the process dies with its stream': {
      breaks: (real) => {
        let ended = false
        return {
          ...real,
          async *events(shell) {
            yield* real.events(shell)
            ended = true
          },
          sandbox: { ...real.sandbox, processes: async () => (ended ? [] : real.sandbox.processes()) },
        }
      },
      says: /the processes of streams that were cut go on/,
    },
  },
})

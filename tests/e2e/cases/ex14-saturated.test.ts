/** EX14: control calls that starve when the guest is saturated. */
import assert from 'node:assert/strict'
import { type ErrorCode, LIMITS } from '@sandglass/contract'
import { must, until, within } from '../bounds.ts'
import { defineCase } from '../case.ts'
import { sharedInstallation } from '../file-installation.ts'
import { type Given, made } from '../fixture.ts'
import { refused } from '../subject/coded.ts'
import type { Command, Sandboxed } from '../subject/sandboxed.ts'
import { sdkSandbox } from '../subject/sdk-sandbox.ts'

type Disposable = {
  readonly sandbox: Sandboxed
  /** Returns when it is gone. */
  readonly remove: () => Promise<void>
}

/** With room for as many small processes as the limit lets in. */
async function disposable(): Promise<Given<Disposable>> {
  const installation = await sharedInstallation()
  const sandbox = await made(installation, { resources: { vcpu: 1, memoryMb: 3_072, diskGb: 1 } })
  return { value: { sandbox: sdkSandbox(sandbox, installation.operatorKey), remove: () => sandbox.delete() }, dispose: () => sandbox.delete() }
}

/** Bounded by the sandbox's own limit of processes. */
const FORK_BOMB: Command = { argv: ['sh', '-c', 'bomb() { bomb | bomb & }; bomb; sleep 600'] }
/** Takes memory and keeps it, until it or its sandbox ends by it: the host's kernel chooses which. */
const MEMORY_HOG: Command = { argv: ['python3', '-c', 'held = []\nwhile True: held.append(bytearray(16 << 20))'] }

const COMMAND_MS = 15_000
/** A thousand programs that all want the one processor may keep the guest from its turn so long that the gateway gives up on it, and says so. */
const ANSWER_MS = LIMITS.guestAnswerMs + 5_000
const SATURATED_MS = 90_000
const DELETE_MS = 30_000

const FULL: readonly ErrorCode[] = ['process_limit', 'process_timed_out', 'client_timeout']
const GONE: readonly ErrorCode[] = ['sandbox_ended', 'sandbox_failed', 'sandbox_not_ready', 'sandbox_not_found', 'lost_contact', 'unavailable']

/** Both outcomes are right, an answer or a clear refusal; waiting without end is not. @returns the refusal's code */
async function answersOrFails(sandbox: Sandboxed, codes: readonly ErrorCode[]): Promise<ErrorCode | undefined> {
  const outcome = await within(
    ANSWER_MS,
    'an answer of `true` in a saturated sandbox',
    sandbox.exec({ argv: ['true'], timeoutMs: COMMAND_MS }).then(
      ({ exitCode }) => ({ exitCode }),
      (error: unknown) => ({ error }),
    ),
  )
  if ('error' in outcome) return refused('`true` in a saturated sandbox', codes, Promise.reject(outcome.error))
  assert.equal(outcome.exitCode, 0, '`true` in a saturated sandbox exits 0.')
  return undefined
}

async function saturate(sandbox: Sandboxed): Promise<void> {
  await must('starting the bomb', sandbox.spawn(FORK_BOMB))
  await until(SATURATED_MS, 'the bomb fills the sandbox', async () => (await answersOrFails(sandbox, [...FULL, ...GONE])) !== undefined)
}

const removed = ({ remove }: Disposable): Promise<void> => must('the delete', within(DELETE_MS, 'the delete of a saturated sandbox', remove()))

const NEVER = new Promise<never>(() => {})
const isTrue = ({ argv }: Command): boolean => argv?.[0] === 'true'

function withExec(real: Disposable, exec: (command: Command) => ReturnType<Sandboxed['exec']>): Disposable {
  return { ...real, sandbox: { ...real.sandbox, exec: (command) => (isTrue(command) ? exec(command) : real.sandbox.exec(command)) } }
}

const hangingDelete = {
  breaks: (real: Disposable): Disposable => ({ ...real, remove: () => NEVER }),
  says: /the delete of a saturated sandbox did not come within/,
}
const hangingCalls = {
  breaks: (real: Disposable): Disposable => withExec(real, () => NEVER),
  says: /an answer of `true` in a saturated sandbox did not come within/,
}
const namelessFailures = {
  breaks: (real: Disposable): Disposable => withExec(real, () => Promise.reject(new Error('socket hang up'))),
  says: /`true` in a saturated sandbox failed with an error without a code/,
}

defineCase<Disposable>({
  id: 'EX14',
  title: 'beside a fork bomb calls answer or say why not, and a delete works',
  subject: disposable,
  timeoutMs: 300_000,
  async run(subject, size) {
    const { sandbox } = subject
    await saturate(sandbox)
    await Promise.all(Array.from({ length: size === 'full' ? 8 : 1 }, () => answersOrFails(sandbox, [...FULL, ...GONE])))
    await removed(subject)
  },
  defects: {
    'calls starve': hangingCalls,
    'calls fail without a name': namelessFailures,
    'the delete hangs': hangingDelete,
  },
})

defineCase<Disposable>({
  id: 'EX14',
  title: 'beside a memory hog calls answer or say why not, and a delete works',
  subject: disposable,
  async run(subject) {
    const { sandbox } = subject
    const hog = await must('starting the hog', sandbox.spawn(MEMORY_HOG))
    let over = false
    const ended = (): void => {
      over = true
    }
    hog.exit.then(ended, ended)
    await until(SATURATED_MS, 'the hog is over', async () => {
      await answersOrFails(sandbox, [...FULL, ...GONE])
      return over
    })
    await answersOrFails(sandbox, GONE)
    await removed(subject)
  },
  defects: { 'calls starve': hangingCalls, 'calls fail without a name': namelessFailures, 'the delete hangs': hangingDelete },
})

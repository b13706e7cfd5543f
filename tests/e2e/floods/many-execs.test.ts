/**
 * Thousands of commands in one sandbox: afterwards no process of ours, the guest agent and the sentry among them, has more descriptors, threads or
 * memory than before. The guest remembers a thousand ended processes, so those that fill its memory of them come first and do not count.
 */
import assert from 'node:assert/strict'
import { LIMITS } from '@sandglass/contract'
import type { Sandbox } from '@sandglass/sdk'
import { type Allowance, type Levels, levels, settledGrowth } from '../../failure/flat.ts'
import { sentryFootprint } from '../../failure/footprint.ts'
import { must } from '../bounds.ts'
import { defineCase } from '../case.ts'
import { sharedInstallation } from '../file-installation.ts'
import { type Given, made } from '../fixture.ts'
import { FLOODS, GROWTH_BYTES } from './sizes.ts'

const IN_FLIGHT = 8
const EXECS = { full: FLOODS.execs, small: 40 } as const
const WARM_UP = { full: LIMITS.processesRetained + 200, small: 40 } as const
const QUIET_MS = { full: 20_000, small: 3_000 } as const
/** Keep-alive connections and worker threads come and go by a few. */
const ALLOWED: Allowance = { pssBytes: GROWTH_BYTES, descriptors: 8, threads: 4 }

type Busy = {
  readonly exec: (index: number) => Promise<string>
  /** Starts a command that does not end. */
  readonly leave: () => Promise<void>
  /** Of our processes on this machine, of the sentry, and of PID 1 inside. */
  readonly look: () => Promise<Levels>
}

const INSIDE =
  "import os\nstatm = open('/proc/1/statm').read().split()\nprint(int(statm[1]) * 4096, len(os.listdir('/proc/1/fd')), len(os.listdir('/proc/1/task')))"

async function guestAgent(sandbox: Sandbox): Promise<Levels[string]> {
  const { stdout } = await sandbox.exec(['python3', '-c', INSIDE], { check: true })
  const [pssBytes = Number.NaN, descriptors = Number.NaN, threads = Number.NaN] = stdout.trim().split(' ').map(Number)
  return { pssBytes, descriptors, threads }
}

async function busy(): Promise<Given<Busy>> {
  const installation = await sharedInstallation()
  const sandbox = await made(installation)
  return {
    value: {
      exec: async (index) => (await sandbox.exec(['echo', String(index)], { check: true })).stdout,
      async leave() {
        await sandbox.start(['sleep', '600'])
      },
      async look() {
        // First, because looking makes the sentry open files of the template, which it keeps.
        const agent = await guestAgent(sandbox)
        const { pssBytes, descriptors, threads } = sentryFootprint(installation.home, sandbox.id)
        return { ...levels(installation.home), sentry: { pssBytes, descriptors, threads }, 'guest-agent': agent }
      },
    },
    dispose: () => sandbox.delete(),
  }
}

async function run({ exec }: Busy, count: number): Promise<void> {
  let next = 0
  const worker = async (): Promise<void> => {
    while (next < count) {
      const index = next
      next += 1
      assert.equal(await must(`command ${index}`, exec(index)), `${index}\n`, `command ${index} says what it was told.`)
    }
  }
  await Promise.all(Array.from({ length: IN_FLIGHT }, worker))
}

defineCase<Busy>({
  id: 'many execs',
  title: `${FLOODS.execs} commands in one sandbox leave every process as it was`,
  subject: busy,
  timeoutMs: 600_000,
  async run(subject, size) {
    await run(subject, WARM_UP[size])
    const before = await must('a look before', subject.look())
    await run(subject, EXECS[size])
    assert.deepEqual(await settledGrowth(before, subject.look, ALLOWED, QUIET_MS[size]), [], 'nothing grew with the commands.')
  },
  defects: {
    'each command leaves a process behind': {
      breaks: (real) => ({
        ...real,
        async exec(index) {
          await real.leave()
          return real.exec(index)
        },
      }),
      says: /nothing grew with the commands[\s\S]*descriptors of guest-agent/,
    },
    'a hop keeps what it has carried': {
      breaks: (real) => {
        let first: number | undefined
        return {
          ...real,
          async look() {
            const seen = await real.look()
            const { gateway } = seen
            if (first === undefined || gateway === undefined) {
              first = gateway?.pssBytes
              return seen
            }
            return { ...seen, gateway: { ...gateway, pssBytes: first + GROWTH_BYTES + 1 } }
          },
        }
      },
      says: /nothing grew with the commands[\s\S]*pssBytes of gateway/,
    },
    'a command is answered with the output of another': {
      breaks: (real) => ({ ...real, exec: (index) => real.exec(index === 7 ? 8 : index) }),
      says: /command 7 says what it was told/,
    },
  },
})

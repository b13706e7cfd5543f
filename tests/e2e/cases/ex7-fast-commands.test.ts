/** EX7: output or exit code lost for very fast commands. */
import assert from 'node:assert/strict'
import { must } from '../bounds.ts'
import { defineCase } from '../case.ts'
import { sandboxed } from '../fixture.ts'
import { text } from '../subject/bytes.ts'
import type { Sandboxed } from '../subject/sandboxed.ts'

const PARALLEL = 64
const ROUNDS = { full: 50, small: 1 } as const

defineCase<Sandboxed>({
  id: 'EX7',
  title: `${PARALLEL} fast commands in parallel, ${ROUNDS.full} rounds: every output with its exit code`,
  subject: sandboxed,
  timeoutMs: 300_000,
  async run(sandbox, size) {
    for (let round = 0; round < ROUNDS[size]; round += 1) {
      const numbers = Array.from({ length: PARALLEL }, (_, index) => round * PARALLEL + index)
      const pairs = await Promise.all(
        numbers.map(async (number) => {
          const outcome = await must(`command ${number}`, sandbox.exec({ argv: ['sh', '-c', `echo ${number}; exit ${number % 256}`] }))
          return `${text(outcome.stdout)}${outcome.exitCode}`
        }),
      )
      const right = numbers.map((number) => `${number}\n${number % 256}`)
      assert.deepEqual(pairs, right, `every output with its exit code in round ${round}`)
    }
  },
  defects: {
    'the last chunk of some outputs is dropped': {
      breaks: (real) => {
        let count = 0
        return {
          ...real,
          async exec(command) {
            const outcome = await real.exec(command)
            count += 1
            return count % 40 === 0 ? { ...outcome, stdout: new Uint8Array() } : outcome
          },
        }
      },
      says: /every output with its exit code in round 0/,
    },
    'some exit codes are lost': {
      breaks: (real) => {
        let count = 0
        return {
          ...real,
          async exec(command) {
            const outcome = await real.exec(command)
            count += 1
            return count % 40 === 0 ? { ...outcome, exitCode: 0 } : outcome
          },
        }
      },
      says: /every output with its exit code in round 0/,
    },
    'answers are given to the wrong caller': {
      breaks: (real) => {
        let held: ((outcome: Awaited<ReturnType<Sandboxed['exec']>>) => void) | undefined
        return {
          ...real,
          async exec(command) {
            const outcome = await real.exec(command)
            if (held === undefined) {
              return new Promise((resolve) => {
                held = resolve
              })
            }
            const give = held
            held = undefined
            give(outcome)
            return outcome
          },
        }
      },
      says: /every output with its exit code in round 0/,
    },
  },
})

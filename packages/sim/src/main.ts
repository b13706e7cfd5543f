/**
 * `sandglass sim --seeds N [--seed S] [--workers N] [--history LINES]`: runs seeds, and stops at the first one that violates an invariant.
 *
 * Exit code 0: nothing was violated. 1: something was, and how it came to that is printed; the same seed does the same again. 2: wrong arguments.
 */
import { availableParallelism } from 'node:os'
import { parseArgs } from 'node:util'
import { runSeeds } from './seeds.ts'

const USAGE = 'sandglass sim --seeds N [--seed S] [--workers N] [--history LINES]'

function numberOf(name: string, text: string | undefined, fallback: number): number {
  if (text === undefined) return fallback
  const value = Number(text)
  if (!Number.isSafeInteger(value) || value < 1) throw new RangeError(`--${name} must be a whole number from 1 on`)
  return value
}

async function main(): Promise<number> {
  const { values } = parseArgs({ options: { seeds: { type: 'string' }, seed: { type: 'string' }, workers: { type: 'string' }, history: { type: 'string' } } })
  const first = numberOf('seed', values.seed, 1)
  const count = numberOf('seeds', values.seeds, values.seed === undefined ? 100 : 1)
  const workers = numberOf('workers', values.workers, Math.min(2, availableParallelism()))
  const historyLines = numberOf('history', values.history, 60)
  const began = performance.now()
  let done = 0
  let simulatedMs = 0
  const { violated } = await runSeeds({
    seeds: Array.from({ length: count }, (_, index) => first + index),
    workers,
    historyLines,
    onSeed: (result) => {
      done += 1
      simulatedMs += result.simulatedMs
      if (count === 1 && result.violation === undefined) say(`seed ${result.seed}: ${result.lines} lines of history, digest ${result.digest}`)
      if (done % 100 === 0) say(`${done} of ${count} seeds`)
    },
  })
  const took = `${((performance.now() - began) / 1_000).toFixed(1)} s`
  if (violated === undefined) {
    say(`${done} seeds, ${(simulatedMs / 3_600_000).toFixed(1)} simulated hours, 0 violations in ${took}`)
    return 0
  }
  for (const line of violated.history) say(line)
  say(`seed ${violated.seed} violates an invariant: ${violated.violation}`)
  say(`the same again: ./sandglass sim --seed ${violated.seed}    more of it: --history 1000`)
  return 1
}

function say(line: string): void {
  process.stdout.write(`${line}\n`)
}

try {
  process.exitCode = await main()
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\nusage: ${USAGE}\n`)
  process.exitCode = 2
}

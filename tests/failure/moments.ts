/**
 * Which moments a run tries. A failing one prints what makes it happen again:
 *
 *   SANDGLASS_CRASH_SEED=… SANDGLASS_CRASH_MOMENT=7 ./sandglass test kill-role
 */
import { randomBytes } from 'node:crypto'

const MOMENTS_DEFAULT = 25

const seedOfRun = process.env['SANDGLASS_CRASH_SEED'] ?? randomBytes(4).toString('hex')

function wholeNumber(name: string): number | undefined {
  const text = process.env[name]
  if (text === undefined || text === '') return undefined
  if (!/^[0-9]{1,4}$/.test(text)) throw new TypeError(`${name} is not a number: ${text}`)
  return Number(text)
}

export type Moments = { readonly seed: string; readonly numbers: readonly number[]; again(moment: number): string }

export function momentsOfRun(): Moments {
  const one = wholeNumber('SANDGLASS_CRASH_MOMENT')
  const count = wholeNumber('SANDGLASS_CRASH_MOMENTS') ?? MOMENTS_DEFAULT
  return {
    seed: seedOfRun,
    numbers: one === undefined ? Array.from({ length: count }, (_, index) => index) : [one],
    again: (moment) => `once more: SANDGLASS_CRASH_SEED=${seedOfRun} SANDGLASS_CRASH_MOMENT=${moment}`,
  }
}

/** Raw samples: everything that was measured, in the order in which it was, one JSON object a line. */
import { appendFileSync, writeFileSync } from 'node:fs'
import { load1 } from './machine.ts'

export type Side = 'ours' | 'peer'

export class Samples {
  readonly path: string
  readonly #values = new Map<string, number[]>()

  constructor(path: string) {
    this.path = path
    writeFileSync(path, '')
  }

  /** @param series names what is measured: `S1 tti` */
  add(series: string, side: Side, value: number, unit: string): void {
    const key = `${side} ${series}`
    const values = this.#values.get(key) ?? []
    values.push(value)
    this.#values.set(key, values)
    const line = { series, side, value: Number(value.toFixed(4)), unit, at_ms: Math.round(performance.now()), load1: load1() }
    appendFileSync(this.path, `${JSON.stringify(line)}\n`)
  }

  of(series: string, side: Side): readonly number[] {
    return this.#values.get(`${side} ${series}`) ?? []
  }
}

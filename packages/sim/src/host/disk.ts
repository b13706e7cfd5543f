/** The disk of a simulated machine. A write takes effect at one moment; the answer comes later, or never when the machine or the process ends in between. */
import type { Machine } from './machine.ts'

export class Disk {
  readonly files = new Map<string, string>()
  /** Nothing more can be written. */
  full = false
  readonly #machine: Machine

  constructor(machine: Machine) {
    this.#machine = machine
  }

  write(path: string, text: string): Promise<void> {
    return this.#machine.step('writes', () => {
      if (this.full) throw Object.assign(new Error('ENOSPC: no space left on device'), { code: 'ENOSPC' })
      this.files.set(path, text)
    })
  }

  remove(path: string): Promise<void> {
    return this.#machine.step('removes', () => void this.files.delete(path))
  }
}

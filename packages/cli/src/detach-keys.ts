/** Ctrl-P Ctrl-Q, as in other tools: leaves a terminal without ending it. A Ctrl-P alone is passed on with the next key. */

const CTRL_P = 0x10
const CTRL_Q = 0x11

export class DetachKeys {
  #held = false

  /** @returns what to pass on, and whether the sequence was completed; what follows it is dropped */
  take(bytes: Uint8Array): { readonly pass: Uint8Array; readonly detach: boolean } {
    const pass: number[] = []
    for (const byte of bytes) {
      if (this.#held && byte === CTRL_Q) return { pass: Uint8Array.from(pass), detach: true }
      if (this.#held) pass.push(CTRL_P)
      this.#held = byte === CTRL_P
      if (!this.#held) pass.push(byte)
    }
    return { pass: Uint8Array.from(pass), detach: false }
  }
}

/** How many sessions of this gateway look at the same terminal. */
export class Viewers {
  readonly #ofTerminal = new Map<string, number>()

  /**
   * @param terminal what names it among all sandboxes
   * @returns to be called once, when the session has gone
   */
  join(terminal: string): () => void {
    this.#ofTerminal.set(terminal, this.#count(terminal) + 1)
    return () => {
      const left = this.#count(terminal) - 1
      if (left === 0) this.#ofTerminal.delete(terminal)
      else this.#ofTerminal.set(terminal, left)
    }
  }

  areSeveral(terminal: string): boolean {
    return this.#count(terminal) > 1
  }

  #count(terminal: string): number {
    return this.#ofTerminal.get(terminal) ?? 0
  }
}

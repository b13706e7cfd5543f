/** A create under way: what `Sandbox.create({ wait: false })` gives. */
import type { Sandbox } from './sandbox.ts'
import type { CallOptions } from './transport.ts'

export class Operation {
  /** `op…`; absent when the sandbox was ready at once. */
  readonly id: string | null
  /** The sandbox as it was when the create was accepted. It cannot run commands before `wait` resolves. */
  readonly sandbox: Sandbox
  readonly #wait: (options: CallOptions) => Promise<Sandbox>

  constructor(id: string | null, sandbox: Sandbox, wait: (options: CallOptions) => Promise<Sandbox>) {
    this.id = id
    this.sandbox = sandbox
    this.#wait = wait
  }

  /**
   * The sandbox, ready.
   * @throws SandglassError the problem of the operation when it failed; `client_timeout`
   */
  wait(options: CallOptions = {}): Promise<Sandbox> {
    return this.#wait(options)
  }
}

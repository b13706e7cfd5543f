/** Reading operations, and waiting for them without polling in a loop: the server holds the answer (`Prefer: wait`). */
import { LIMITS } from '@sandglass/contract/limits'
import { OperationSchema, type Operation as WireOperation } from '@sandglass/contract/operation'
import { parseProblem } from '@sandglass/contract/problem'
import { parserOf } from '@sandglass/contract/schema'
import type { Sandglass } from './client.ts'
import { docsOf, SandglassError } from './error.ts'
import type { CallOptions } from './transport.ts'
import { sleep } from './world.ts'

const parser = parserOf(OperationSchema)
const WAIT_SECONDS = Math.min(60, LIMITS.preferWaitSeconds)
const MARGIN_MS = 10_000
/** A server may answer at once although it was asked to wait; asking again is then held back this long. */
const PAUSE_MS = 100

/** The error that a failed operation stands for. */
export function errorOfOperation(operation: WireOperation, apiUrl: string): SandglassError {
  const problem = parseProblem(operation.problem)
  if (problem === undefined) return new SandglassError('operation_failed')
  return new SandglassError(problem.code, problem.detail, {
    status: problem.status,
    retryable: problem.retryable,
    requestId: problem.request_id,
    errors: problem.errors,
    limit: problem.limit,
    docs: docsOf(apiUrl, problem.code),
  })
}

export class Operations {
  readonly #client: Sandglass

  constructor(client: Sandglass) {
    this.#client = client
  }

  /** @throws SandglassError `operation_not_found` */
  get(id: string, options: CallOptions & { readonly waitSeconds?: number } = {}): Promise<WireOperation> {
    const { waitSeconds, ...call } = options
    return this.#client.transport.json(
      {
        ...call,
        method: 'GET',
        url: `${this.#client.url}/v1/operations/${encodeURIComponent(id)}`,
        headers: waitSeconds === undefined ? {} : { prefer: `wait=${waitSeconds}` },
        repeatable: true,
      },
      parser,
    )
  }

  /**
   * Waits until the operation has ended well.
   * @param options `timeoutMs` default 10 minutes
   * @throws SandglassError the problem of a failed operation; `client_timeout`
   */
  async wait(id: string, options: CallOptions = {}): Promise<WireOperation> {
    const { world } = this.#client.transport
    const endsAt = world.now() + (options.timeoutMs ?? 600_000)
    for (;;) {
      const leftMs = endsAt - world.now()
      if (leftMs <= 0) throw new SandglassError('client_timeout', `Operation ${id} is still pending.`)
      const waitSeconds = Math.max(1, Math.min(WAIT_SECONDS, Math.ceil(leftMs / 1000)))
      const operation = await this.get(id, { signal: options.signal, waitSeconds, timeoutMs: Math.min(leftMs, waitSeconds * 1000 + MARGIN_MS) })
      if (operation.status === 'succeeded') return operation
      if (operation.status === 'failed') throw errorOfOperation(operation, this.#client.url)
      await sleep(world, PAUSE_MS, options.signal)
    }
  }
}

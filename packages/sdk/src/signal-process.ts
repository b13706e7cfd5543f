/** Sending signals. */
import { ProcessSchema, type SIGNALS, type Process as WireProcess } from '@sandglass/contract/process'
import { parserOf } from '@sandglass/contract/schema'
import type { DataPlane } from './data-plane.ts'
import type { CallOptions } from './transport.ts'

/** Name without `SIG`. */
export type SignalName = (typeof SIGNALS)[number]

export type SignalOptions = CallOptions & {
  /** Also all descendants, however they detached themselves. Default true. */
  readonly tree?: boolean | undefined
}

export const processParser = parserOf(ProcessSchema)

/** @param idOrKey a process id, or `key:` and a process key */
export function signalProcess(plane: DataPlane, idOrKey: string, signal: SignalName, options: SignalOptions): Promise<WireProcess> {
  const { tree, ...call } = options
  return plane.transport.json(
    {
      ...call,
      method: 'POST',
      url: `${plane.base}/processes/${encodeURIComponent(idOrKey)}/signal`,
      json: tree === undefined ? { signal } : { signal, tree },
      repeatable: true,
    },
    processParser,
  )
}

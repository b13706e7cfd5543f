/** A sandbox that the check stops and starts, and what of it runs on the machine. */
import { Sandbox } from '@sandglass/sdk'
import { sharedInstallation } from './file-installation.ts'
import { type Given, made } from './fixture.ts'
import { allSentries, sentriesOf } from './sentries.ts'
import type { Sandboxed } from './subject/sandboxed.ts'
import { sdkSandbox } from './subject/sdk-sandbox.ts'

export type Run = { readonly status: string; readonly generation: number; readonly writableLayer: string }

export type Stoppable = {
  /** Reaches into it, in whatever state it is. */
  readonly sandbox: Sandboxed
  readonly seen: () => Promise<Run>
  /** Each waits until it is so. */
  readonly stop: () => Promise<Run>
  readonly start: () => Promise<Run>
  readonly remove: () => Promise<void>
  /** Pids of live runtimes that serve it or have served it. */
  readonly runtimes: () => readonly number[]
}

const runOf = ({ resource }: Sandbox): Run => ({ status: resource.status, generation: resource.generation, writableLayer: resource.writable_layer })

export async function stoppable(): Promise<Given<Stoppable>> {
  const installation = await sharedInstallation()
  const client = installation.client()
  const created = await made(installation)
  // Which member of a pool it was is known only while it runs.
  const served = new Set<number>()
  const look = (): void => {
    for (const { pid } of sentriesOf(installation.home, created.id)) served.add(pid)
  }
  look()
  // Each call is a client of its own.
  const another = (): Promise<Sandbox> => Sandbox.get(created.id, { client })
  return {
    value: {
      sandbox: sdkSandbox(created, installation.operatorKey),
      seen: async () => runOf(await another()),
      async stop() {
        look()
        return runOf(await (await another()).stop())
      },
      async start() {
        const run = runOf(await (await another()).start())
        look()
        return run
      },
      remove: async () => (await another()).delete(),
      runtimes() {
        look()
        const live = new Set(allSentries(installation.home).map(({ pid }) => pid))
        return [...served].filter((pid) => live.has(pid))
      },
    },
    dispose: () => created.delete(),
  }
}

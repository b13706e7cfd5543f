/** A sandbox, what the platform says of it, and a neighbour on the same host. */
import { Sandbox } from '@sandglass/sdk'
import { sharedInstallation } from './file-installation.ts'
import { type Given, made } from './fixture.ts'
import { sentriesOf } from './sentries.ts'
import type { Sandboxed } from './subject/sandboxed.ts'
import { sdkSandbox } from './subject/sdk-sandbox.ts'

export type Said = { readonly status: string; readonly reason: string | null }

export type Known = {
  readonly sandbox: Sandboxed
  readonly neighbour: Sandboxed
  /** Kills the runtime from outside. */
  readonly killRuntime: () => void
  readonly seen: () => Promise<Said>
  /** As the list of all sandboxes has it. */
  readonly listed: () => Promise<Said>
}

const saidOf = ({ resource }: Sandbox): Said => ({ status: resource.status, reason: resource.status_reason })

export async function known(): Promise<Given<Known>> {
  const installation = await sharedInstallation()
  const client = installation.client()
  const [sandbox, neighbour] = await Promise.all([made(installation), made(installation)])
  return {
    value: {
      sandbox: sdkSandbox(sandbox, installation.operatorKey),
      neighbour: sdkSandbox(neighbour, installation.operatorKey),
      killRuntime() {
        for (const { pid } of sentriesOf(installation.home, sandbox.id)) process.kill(pid, 'SIGKILL')
      },
      seen: async () => saidOf(await Sandbox.get(sandbox.id, { client })),
      async listed() {
        for await (const one of Sandbox.list({ client })) if (one.id === sandbox.id) return saidOf(one)
        return { status: 'not listed', reason: null }
      },
    },
    async dispose() {
      await Promise.all([sandbox.delete(), neighbour.delete()])
    },
  }
}

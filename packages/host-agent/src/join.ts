/** `--join`: gets this machine its identity and ends. Tells how it ended in one line of JSON, for whoever started it. */
import { randomBytes } from 'node:crypto'
import { mkdir } from 'node:fs/promises'
import { CodedError } from '@sandglass/contract'
import type { Configuration } from './configuration.ts'
import { hostIdentity } from './control/host-identity.ts'
import type { AgentWorld } from './machine.ts'
import { bootId } from './state/boot-id.ts'
import { hostRecords } from './state/host-records.ts'
import { lockInstance } from './state/instance-lock.ts'
import { layoutOf } from './state/layout.ts'

export type Joined = { readonly host_id: string } | { readonly code: string; readonly detail: string }

/** Waits for no agent: one that runs has joined. */
const LOCK_PATIENCE_MS = 0

export async function joinOnly(configuration: Configuration, world: AgentWorld): Promise<Joined> {
  try {
    await using _lock = await lockInstance(configuration.installation, world.clock, LOCK_PATIENCE_MS)
    const layout = layoutOf(configuration.stateDir, configuration.installation)
    await mkdir(layout.root, { recursive: true, mode: 0o700 })
    const { host_id } = await hostRecords(layout.hostRecord, randomBytes).load(await bootId())
    await (await hostIdentity(configuration, host_id, world)).confirm()
    return { host_id }
  } catch (error) {
    if (error instanceof CodedError) return { code: error.code, detail: error.message }
    return { code: 'internal', detail: error instanceof Error ? error.message : String(error) }
  }
}

/** The channel of a sandbox on this machine: where it is, and whom the host agent expects there. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parserOf } from '@sandglass/contract'
import Type from 'typebox'

const record = parserOf(Type.Object({ runtime: Type.Object({ name: Type.String(), generation: Type.Integer(), guest_boot_id: Type.String() }) }))

export type Channel = {
  readonly directory: string
  readonly socket: string
  readonly identity: { readonly sandbox: string; readonly generation: number; readonly boot_id: string }
}

/** @param home of the installation */
export function channelOf(home: string, sandboxId: string): Channel {
  const host = join(home, 'host')
  const { runtime } = record.parse(JSON.parse(readFileSync(join(host, 'sandboxes', `${sandboxId}.json`), 'utf8')))
  // One that came out of a pool keeps the name that it had there.
  const directory = join(host, 'run', runtime.name, 'channel')
  const identity = { sandbox: sandboxId, generation: runtime.generation, boot_id: runtime.guest_boot_id }
  return { directory, socket: join(directory, 'channel.sock'), identity }
}

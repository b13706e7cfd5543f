/** Step: the runtime's own directories, with the guest agent linked into the one that the sandbox sees. Fresh: leftovers of the name are removed. */
import { mkdir, rm } from 'node:fs/promises'
import type { GuestAgentFile } from '../guest/guest-agent-file.ts'
import type { RuntimePaths } from '../state/layout.ts'

export async function makeDirectories(paths: RuntimePaths, guestAgent: GuestAgentFile): Promise<void> {
  await rm(paths.dir, { recursive: true, force: true })
  await mkdir(paths.dir, { recursive: true, mode: 0o700 })
  await mkdir(paths.channel, { mode: 0o755 })
  await guestAgent.linkTo(paths.agent)
}

export async function removeDirectories(paths: RuntimePaths): Promise<void> {
  await rm(paths.dir, { recursive: true, force: true })
}

/**
 * The guest agent's file: copied into the state directory once per version, hard-linked into every channel directory.
 *
 * A link costs nothing and keeps its bytes when a new version is installed over the original; the copy keeps guests and originals apart
 * when they are on different file systems.
 */
import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { chmod, copyFile, link, mkdir, readdir, readFile, rename, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'

const HASH_CHARACTERS = 16

export type GuestAgentFile = { readonly version: string; linkTo(path: string): Promise<void> }

/** @throws Error when there is no such file */
export async function installGuestAgent(source: string, directory: string): Promise<GuestAgentFile> {
  const version = createHash('sha256')
    .update(await readFile(source))
    .digest('hex')
    .slice(0, HASH_CHARACTERS)
  const path = join(directory, version)
  await mkdir(directory, { recursive: true })
  if (!existsSync(path)) {
    const temporary = join(directory, `.tmp-${version}`)
    await copyFile(source, temporary)
    await chmod(temporary, 0o755)
    await rename(temporary, path)
  }
  // A version that no sandbox is linked to any more has one name left: its own.
  for (const name of await readdir(directory)) if (name !== version && (await stat(join(directory, name))).nlink === 1) await rm(join(directory, name))
  return { version, linkTo: (target) => link(path, target) }
}

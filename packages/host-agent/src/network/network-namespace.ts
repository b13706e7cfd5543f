/**
 * One network namespace per sandbox, named, made before the runtime: gVisor never sees an interface that is added later.
 * With mode `none` it holds a loopback interface and nothing else.
 */
import { existsSync, readdirSync } from 'node:fs'
import { mkdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { runCommand } from '../processes/run-command.ts'

const DIRECTORY = '/run/netns'

export const namespacePath = (name: string): string => join(DIRECTORY, name)

/** A fresh one; whatever had the name is removed first. */
export async function createNamespace(name: string, signal?: AbortSignal): Promise<void> {
  if (existsSync(namespacePath(name))) await removeNamespace(name)
  await mkdir(DIRECTORY, { recursive: true })
  await writeFile(namespacePath(name), '', { flag: 'wx' })
  // One process makes the namespace, binds it to the file and raises the interface; `ip netns add` would need a second one.
  await runCommand('unshare', [`--net=${namespacePath(name)}`, 'ip', 'link', 'set', 'lo', 'up'], { signal })
}

/** Idempotent. */
export async function removeNamespace(name: string): Promise<void> {
  const path = namespacePath(name)
  if (!existsSync(path)) return
  try {
    await runCommand('ip', ['netns', 'delete', name])
  } catch {
    // A file without a namespace bound to it, left by a crash between the two.
    await runCommand('umount', ['-l', path]).catch(() => '')
    await rm(path, { force: true })
  }
}

/** Names that begin with the prefix, without it. */
export function listNamespaces(prefix: string): string[] {
  if (!existsSync(DIRECTORY)) return []
  return readdirSync(DIRECTORY)
    .filter((name) => name.startsWith(prefix))
    .map((name) => name.slice(prefix.length))
}

/** A sandbox that writes far more than anybody reads, and what our processes take meanwhile. */
import { sharedInstallation } from '../file-installation.ts'
import { type Given, made } from '../fixture.ts'
import { type Growth, growthDuring } from '../memory-watch.ts'
import type { Sandboxed } from '../subject/sandboxed.ts'
import { sdkSandbox } from '../subject/sdk-sandbox.ts'

export type Flooded = {
  readonly sandbox: Sandboxed
  readonly growthDuring: (action: () => Promise<void>) => Promise<Growth>
  /** Bytes that a process has written to its standard output so far. */
  readonly written: (processId: string) => Promise<number>
}

export async function flooded(): Promise<Given<Flooded>> {
  const installation = await sharedInstallation()
  const sandbox = await made(installation)
  const inside = sdkSandbox(sandbox, installation.operatorKey)
  return {
    value: {
      sandbox: inside,
      growthDuring: (action) => growthDuring(installation.home, inside, action),
      written: async (processId) => (await sandbox.process(processId)).resource.stdout.end,
    },
    dispose: () => sandbox.delete(),
  }
}

/** `bytes` of `y` and newline, as `yes` writes them. */
export const flood = (bytes: number): readonly string[] => ['sh', '-c', `yes | head -c ${bytes}`]

const BLOCK = Buffer.alloc(1024 * 1024, 'y\n')

/** The same bytes made here. */
export function* floodBytes(bytes: number): Generator<Uint8Array> {
  for (let made = 0; made < bytes; made += BLOCK.byteLength) yield BLOCK.subarray(0, Math.min(BLOCK.byteLength, bytes - made))
}

/** Is a part of the flood what it must be at its place? */
export function isFlood(part: Uint8Array, offset: number): boolean {
  for (let at = 0; at < part.byteLength; ) {
    const first = (offset + at) % BLOCK.byteLength
    const size = Math.min(BLOCK.byteLength - first, part.byteLength - at)
    if (!BLOCK.subarray(first, first + size).equals(part.subarray(at, at + size))) return false
    at += size
  }
  return true
}

/** Node.js, and whatever is like it. `platform-browser.ts` is its twin; package.json says who gets which. */
import type { SessionAction } from '@sandglass/contract/session-ticket'
import type { DataPlane } from './data-plane.ts'
import type { SandboxPath } from './file-path.ts'
import type { Files } from './files.ts'
import { httpFetch } from './http-fetch.ts'
import type { TransferOptions } from './tree-upload.ts'

/** What opens a WebSocket: headers, and subprotocols beside the one that is spoken. */
export type SessionPass = { readonly headers: Readonly<Record<string, string>>; readonly protocols: readonly string[] }

/** Can a request be sent while its body is still being made? */
export const STREAMS_BODIES: boolean = true

export const send: typeof fetch = httpFetch

export async function sessionPass(plane: DataPlane, _action: SessionAction, _signal: AbortSignal): Promise<SessionPass> {
  return { headers: plane.transport.headers, protocols: [] }
}

export async function upload(files: Files, from: string | Uint8Array, to: SandboxPath, options: TransferOptions): Promise<void> {
  const { uploadTree } = await import('./tree-upload.ts')
  await uploadTree(files, from, to, options)
}

export async function download(files: Files, from: SandboxPath, to: string | Uint8Array, options: TransferOptions): Promise<void> {
  const { downloadTree } = await import('./tree-download.ts')
  await downloadTree(files, from, to, options)
}

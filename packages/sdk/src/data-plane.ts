/** How a sandbox's commands and files are reached: at its own gateway URL, never at a guessed one. */
import type { Transport } from './transport.ts'

export type DataPlane = {
  readonly transport: Transport
  /** `https://gateway/v1/sandboxes/{id}` */
  readonly base: string
  /** For messages. */
  readonly sandboxId: string
}

export function dataPlaneOf(
  transport: Transport,
  sandbox: { readonly id: string; readonly gateway_url: string; readonly gateway_urls?: readonly string[] },
): DataPlane {
  transport.places.learn(sandbox.gateway_urls ?? [])
  return { transport, base: `${sandbox.gateway_url.replace(/\/+$/, '')}/v1/sandboxes/${sandbox.id}`, sandboxId: sandbox.id }
}

/** For a WebSocket, from the URL that a request would be sent to. */
export const webSocketUrl = (url: string): string => url.replace(/^http/, 'ws')

/** A sandbox whose connections can be cut at either of their two inner places, seen by clients that come back and by those that do not. */
import { cutConnections, type Place } from './cut-connections.ts'
import { sharedInstallation } from './file-installation.ts'
import { type Given, made } from './fixture.ts'
import { eventStream, type StreamedEvent } from './subject/event-stream.ts'
import { rawHttp, succeeded } from './subject/raw-http.ts'
import type { Sandboxed } from './subject/sandboxed.ts'
import { sdkSandbox } from './subject/sdk-sandbox.ts'

export type Cuttable = {
  /** Its streams come back by themselves. */
  readonly sandbox: Sandboxed
  /** A command over server-sent events. */
  readonly events: (shell: string) => AsyncIterable<StreamedEvent>
  /** A command with one answer at its end. @throws Coded */
  readonly once: (shell: string) => Promise<void>
  /** @returns how many connections were cut */
  readonly cut: (place: Place) => number
}

export async function cuttable(): Promise<Given<Cuttable>> {
  const installation = await sharedInstallation()
  const sandbox = await made(installation)
  const request = (shell: string, accept: string) => ({
    method: 'POST',
    path: `/v1/sandboxes/${sandbox.id}/exec`,
    headers: { authorization: `Bearer ${installation.operatorKey}`, 'content-type': 'application/json', accept },
    body: JSON.stringify({ shell }),
  })
  return {
    value: {
      sandbox: sdkSandbox(sandbox, installation.operatorKey),
      events: (shell) => eventStream(sandbox.resource.gateway_url, request(shell, 'text/event-stream')),
      async once(shell) {
        succeeded(await rawHttp(sandbox.resource.gateway_url, request(shell, 'application/json')))
      },
      cut: (place) => cutConnections(installation.home, place),
    },
    dispose: () => sandbox.delete(),
  }
}

/**
 * Starting and stopping a sandbox that exists. Each call carries a key of its own: a repeat after a lost answer finds what the first one did, and never
 * undoes what somebody else has asked for since.
 */
import { LIMITS } from '@sandglass/contract/limits'
import type { Sandbox as WireSandbox } from '@sandglass/contract/sandbox'
import type { Sandglass } from './client.ts'
import { becomeReady, DEFAULT_START_TIMEOUT_MS, getSandbox, sandboxParser } from './create-sandbox.ts'
import type { CallOptions } from './transport.ts'

export type RunOptions = CallOptions & {
  /** Until it is ready, or until nothing of it runs any more. Default true. */
  readonly wait?: boolean | undefined
}

/** @param options `timeoutMs` default 120,000 */
export async function startSandbox(client: Sandglass, id: string, options: RunOptions): Promise<WireSandbox> {
  return await run(client, id, 'start', options, (asked, call) => becomeReady(client, asked, call))
}

/** @param options `timeoutMs` default 120,000 */
export async function stopSandbox(client: Sandglass, id: string, options: RunOptions): Promise<WireSandbox> {
  return await run(client, id, 'stop', options, async (asked, call) => {
    const { status, operation_id: operationId } = asked
    if ((status !== 'stopping' && status !== 'failed') || operationId === null) return asked
    // Of one that failed it may be the start that did: only a pending one is this stop.
    if (status === 'failed' && (await client.operations.get(operationId, call)).status !== 'pending') return asked
    await client.operations.wait(operationId, call)
    return await getSandbox(client, id, call)
  })
}

async function run(
  client: Sandglass,
  id: string,
  want: 'start' | 'stop',
  { wait = true, signal, timeoutMs = DEFAULT_START_TIMEOUT_MS }: RunOptions,
  rest: (asked: WireSandbox, call: CallOptions) => Promise<WireSandbox>,
): Promise<WireSandbox> {
  const { world } = client.transport
  const endsAt = world.now() + timeoutMs
  const waitSeconds = Math.max(1, Math.min(LIMITS.preferWaitSeconds, Math.floor(timeoutMs / 1000)))
  const asked = await client.transport.json(
    {
      method: 'POST',
      url: `${client.url}/v1/sandboxes/${encodeURIComponent(id)}/${want}`,
      headers: { 'idempotency-key': world.newKey(), ...(wait ? { prefer: `wait=${waitSeconds}` } : {}) },
      repeatable: true,
      signal,
      timeoutMs,
    },
    sandboxParser,
  )
  return wait ? await rest(asked, { signal, timeoutMs: Math.max(1, endsAt - world.now()) }) : asked
}

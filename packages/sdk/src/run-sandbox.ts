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
    if (asked.status !== 'stopping' || asked.operation_id === null) return asked
    await client.operations.wait(asked.operation_id, call)
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

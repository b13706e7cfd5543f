/**
 * Creating without leaks: every create carries an idempotency key, so a repeat after a lost answer finds the first one's sandbox, and a create
 * that is given up is looked up by its key and deleted.
 */
import { ERRORS, type ErrorCode } from '@sandglass/contract/errors'
import { LIMITS } from '@sandglass/contract/limits'
import { type CreateSandbox, SandboxSchema, type SandboxStatus, type Sandbox as WireSandbox } from '@sandglass/contract/sandbox'
import { parserOf } from '@sandglass/contract/schema'
import type { Sandglass } from './client.ts'
import { docsOf, SandglassError } from './error.ts'
import type { CallOptions } from './transport.ts'

export const sandboxParser = parserOf(SandboxSchema)

export const DEFAULT_START_TIMEOUT_MS = 120_000
const ABANDON_TIMEOUT_MS = 10_000
const ANSWER_MARGIN_MS = 10_000

/** @param waitSeconds how long the server may hold the answer until the sandbox is ready */
export function postSandbox(client: Sandglass, body: CreateSandbox, key: string, waitSeconds: number, options: CallOptions): Promise<WireSandbox> {
  return client.transport.json(
    {
      method: 'POST',
      url: `${client.url}/v1/sandboxes`,
      headers: { 'idempotency-key': key, ...(waitSeconds > 0 ? { prefer: `wait=${waitSeconds}` } : {}) },
      json: body,
      repeatable: true,
      signal: options.signal,
      timeoutMs: options.timeoutMs,
    },
    sandboxParser,
  )
}

export function getSandbox(client: Sandglass, idOrName: string, options: CallOptions): Promise<WireSandbox> {
  return client.transport.json(
    {
      method: 'GET',
      url: `${client.url}/v1/sandboxes/${encodeURIComponent(idOrName)}`,
      repeatable: true,
      signal: options.signal,
      timeoutMs: options.timeoutMs,
    },
    sandboxParser,
  )
}

/** @param waitSeconds how long the server may hold the answer until the sandbox has ended */
export function deleteSandbox(client: Sandglass, id: string, waitSeconds: number, options: CallOptions): Promise<void> {
  return client.transport.empty({
    method: 'DELETE',
    url: `${client.url}/v1/sandboxes/${encodeURIComponent(id)}`,
    headers: waitSeconds > 0 ? { prefer: `wait=${waitSeconds}` } : {},
    repeatable: true,
    signal: options.signal,
    timeoutMs: options.timeoutMs ?? waitSeconds * 1000 + ANSWER_MARGIN_MS,
  })
}

export async function createReady(client: Sandglass, body: CreateSandbox, key: string, options: CallOptions): Promise<WireSandbox> {
  const timeoutMs = options.timeoutMs ?? DEFAULT_START_TIMEOUT_MS
  const endsAt = client.transport.world.now() + timeoutMs
  try {
    const waitSeconds = Math.max(1, Math.min(LIMITS.preferWaitSeconds, Math.floor(timeoutMs / 1000)))
    const made = await postSandbox(client, body, key, waitSeconds, { signal: options.signal, timeoutMs })
    return await becomeReady(client, made, { signal: options.signal, timeoutMs: Math.max(1, endsAt - client.transport.world.now()) })
  } catch (error) {
    if (options.signal?.aborted || (error instanceof SandglassError && error.code === 'client_timeout')) await abandon(client, body, key)
    throw error
  }
}

/** Waits for a sandbox that was accepted. @throws SandglassError why it did not start */
export async function becomeReady(client: Sandglass, sandbox: WireSandbox, options: CallOptions): Promise<WireSandbox> {
  if (sandbox.status === 'ready') return sandbox
  if (sandbox.operation_id !== null) await client.operations.wait(sandbox.operation_id, options)
  const now = await getSandbox(client, sandbox.id, options)
  if (now.status === 'ready') return now
  throw notReady(client, now)
}

/** The error for a sandbox that cannot be used. */
export function notReady(client: Sandglass, sandbox: WireSandbox): SandglassError {
  const why = sandbox.status_reason ?? sandbox.unschedulable_reason
  const named = sandbox.name === null ? sandbox.id : `${sandbox.name} (${sandbox.id})`
  const code = UNUSABLE[sandbox.status]
  const next = code === 'sandbox_failed' && sandbox.name !== null ? REPLACE : ERRORS[code].next
  return new SandglassError(code, `Sandbox ${named} is ${sandbox.status}${why === null ? '' : ` (${why})`}. ${next}`, { docs: docsOf(client.url, code) })
}

const REPLACE = 'Start it anew (`sandbox.start()`), or delete it and create a new one: `sandbox.delete()`, or getOrCreate with `replaceFailed: true`.'

const UNUSABLE = {
  pending: 'sandbox_not_ready',
  assigned: 'sandbox_not_ready',
  starting: 'sandbox_not_ready',
  ready: 'sandbox_not_ready',
  stopping: 'sandbox_stopped',
  stopped: 'sandbox_stopped',
  failed: 'sandbox_failed',
  terminating: 'sandbox_ended',
  terminated: 'sandbox_ended',
} as const satisfies Record<SandboxStatus, ErrorCode>

/** The caller has no id yet, perhaps because the answer was lost; the key finds it. What cannot be reached now ends by its own deadline. */
async function abandon(client: Sandglass, body: CreateSandbox, key: string): Promise<void> {
  try {
    const { id } = await postSandbox(client, body, key, 0, { timeoutMs: ABANDON_TIMEOUT_MS })
    await deleteSandbox(client, id, 0, { timeoutMs: ABANDON_TIMEOUT_MS })
  } catch (error) {
    if (!(error instanceof SandglassError)) throw error
  }
}

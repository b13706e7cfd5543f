/** Waits for an operation to end, without polling, and reads it. */
import type { Context } from '../context.ts'
import type { Expected } from '../events/operation-waiters.ts'
import { findOperation, type OperationRow } from '../store/operations.ts'
import type { SandboxRow } from '../store/sandboxes.ts'

/** @param waitMs undefined: only reads */
export async function awaitOperation(
  context: Pick<Context, 'db' | 'waiters'>,
  tenantId: string,
  operationId: string,
  waitMs: number | undefined,
  gone: AbortSignal,
): Promise<OperationRow | undefined> {
  const expected = waitMs === undefined || waitMs === 0 ? undefined : context.waiters.expect(operationId, waitMs)
  try {
    const now = await findOperation(context.db, tenantId, operationId)
    if (expected === undefined || now === undefined || now.status !== 'pending') return now
    await endOf(expected, gone)
    return await findOperation(context.db, tenantId, operationId)
  } finally {
    expected?.cancel()
  }
}

/** @returns the sandbox, when the operation ended well by a commit of this process; undefined: it has to be read */
export async function endOf(expected: Expected, gone: AbortSignal): Promise<SandboxRow | undefined> {
  gone.addEventListener('abort', expected.cancel, { once: true })
  try {
    return await expected.ended
  } finally {
    gone.removeEventListener('abort', expected.cancel)
  }
}

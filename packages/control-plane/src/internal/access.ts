/** Who may reach which runtime: the answer to a gateway's question, from one read. guard: route.lease */
import { type Access, type AccessQuestion, CodedError } from '@sandglass/contract'
import type { Database } from '../store/database.ts'
import { readAccess } from '../store/routes.ts'

/** @throws CodedError `unauthenticated`; `sandbox_not_found`, also for someone else's */
export async function answerAccess(db: Database, question: AccessQuestion, leaseMs: number): Promise<Access> {
  const access = await readAccess(db, question.key_sha256, question.sandbox_id, leaseMs)
  if (access === 'no_key') throw new CodedError('unauthenticated')
  if (access === 'no_sandbox') throw new CodedError('sandbox_not_found')
  return access
}

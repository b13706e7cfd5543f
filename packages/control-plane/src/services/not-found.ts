/** Refusals that name what was asked for and what there is: whoever mistyped a name wants to see the right one. */
import { CodedError, ERRORS } from '@sandglass/contract'
import type { Queryable } from '../store/database.ts'
import { findSandbox, type SandboxRow } from '../store/sandboxes.ts'
import { listTemplates } from '../store/templates.ts'

const NAMED_TEMPLATES = 10
/** Longer or stranger than any name or id: not worth repeating. */
const NAME_LIKE = /^[A-Za-z0-9-]{1,64}$/

export function sandboxNotFound(idOrName: string): CodedError {
  return new CodedError('sandbox_not_found', NAME_LIKE.test(idOrName) ? `There is no sandbox ${idOrName}. ${ERRORS.sandbox_not_found.next}` : undefined)
}

/** @param reference name, or name@digest */
export async function templateNotFound(db: Queryable, reference: string): Promise<CodedError> {
  const names = (await listTemplates(db, undefined, NAMED_TEMPLATES)).map(({ name }) => name)
  const known = names.length === 0 ? 'There are none yet.' : `There ${names.length === 1 ? 'is' : 'are'} ${names.join(', ')}.`
  return new CodedError('template_not_found', `There is no template ${reference}. ${known}`)
}

/** Read after the refusal: the holder may be gone by then. */
export async function nameTaken(db: Queryable, tenantId: string, name: string, cause: unknown): Promise<CodedError> {
  const holder = await findSandbox(db, tenantId, name)
  const by = holder === undefined ? 'another sandbox' : `sandbox ${holder.id}, which is ${holder.observed}`
  return new CodedError('name_taken', `The name ${name} is taken by ${by}. ${ERRORS.name_taken.next}`, { cause })
}

export function sandboxEnded({ id, status_reason }: Pick<SandboxRow, 'id' | 'status_reason'>): CodedError {
  const why = status_reason === null ? '' : ` (${status_reason})`
  return new CodedError('sandbox_ended', `Sandbox ${id} has ended${why}. ${ERRORS.sandbox_ended.next}`)
}

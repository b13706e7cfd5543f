/** What an API key may do. */
import type { Static } from 'typebox'
import { CodedError } from './errors.ts'
import { oneOf } from './schema.ts'

export const RoleSchema = oneOf(['operator', 'owner', 'member', 'viewer'], {
  description: 'operator: fleet and everything; owner: keys and sandboxes of its tenant; member: sandboxes; viewer: reads.',
})
export type Role = Static<typeof RoleSchema>

/** Each may do what those below it may. */
const RANK: Readonly<Record<Role, number>> = { viewer: 0, member: 1, owner: 2, operator: 3 }

export const hasRole = (own: Role, least: Role): boolean => RANK[own] >= RANK[least]

/** @throws CodedError `forbidden` */
export function requireRole(own: Role, least: Role): void {
  if (!hasRole(own, least)) throw new CodedError('forbidden', `This needs the role ${least}; the key has ${own}.`)
}

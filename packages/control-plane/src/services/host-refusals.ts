/** Refusals about hosts that say what there is. */
import { CodedError, ERRORS } from '@sandglass/contract'

/** Hosts of one name that are looked at, and named. */
export const NAMED_HOSTS = 5

/** Longer or stranger than any name or id: not worth repeating. */
const NAME_LIKE = /^[\x21-\x7e]{1,64}$/

export function hostNotFound(idOrName: string): CodedError {
  return new CodedError('host_not_found', NAME_LIKE.test(idOrName) ? `There is no host ${idOrName}. ${ERRORS.host_not_found.next}` : undefined)
}

export function ambiguousHost(name: string, hosts: readonly { readonly id: string }[]): CodedError {
  const ids = hosts.map(({ id }) => id).join(', ')
  return new CodedError('host_ambiguous', `Several hosts are named ${name}: ${ids}. ${ERRORS.host_ambiguous.next}`)
}

/** Labels of a host. Pure. */
import { CodedError, type HostLabels, LIMITS, type UpdateHost } from '@sandglass/contract'

/**
 * Sets what is named, takes away what is named with null, and leaves the rest.
 * @throws CodedError `limit_exceeded`
 */
export function changedLabels(labels: HostLabels, change: UpdateHost['labels']): HostLabels {
  const next = Object.fromEntries(Object.entries({ ...labels, ...change }).flatMap(([key, value]) => (value === null ? [] : [[key, value] as const])))
  const count = Object.keys(next).length
  if (count > LIMITS.hostLabels) {
    throw new CodedError('limit_exceeded', `The host would have ${count} labels; at most ${LIMITS.hostLabels} are allowed. Take some away with null.`, {
      limit: { name: 'hostLabels', value: LIMITS.hostLabels },
    })
  }
  return next
}

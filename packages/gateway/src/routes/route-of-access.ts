/** The route that an access answer gives, or the error that says why there is none. */
import { type Access, CodedError, ERRORS, type Route, type SandboxStatus } from '@sandglass/contract'

function refusal(status: SandboxStatus, reason: string | null): CodedError {
  const because = reason === null ? '' : ` (${reason})`
  switch (status) {
    case 'terminating':
    case 'terminated':
      return new CodedError('sandbox_ended', `The sandbox has ended${because}. ${ERRORS.sandbox_ended.next}`)
    case 'failed':
      return new CodedError('sandbox_failed', `The sandbox failed${because}. ${ERRORS.sandbox_failed.next}`)
    case 'stopping':
    case 'stopped':
      return new CodedError('sandbox_stopped', `The sandbox is ${status}. ${ERRORS.sandbox_stopped.next}`)
    case 'ready':
      return new CodedError('unavailable', 'The host of this sandbox is not heard from at the moment; try again.')
    case 'pending':
    case 'assigned':
    case 'starting':
      return new CodedError('sandbox_not_ready', `The sandbox is ${status}; wait until it is ready.`)
  }
}

/** @throws CodedError `sandbox_not_ready`, `sandbox_stopped`, `sandbox_ended`, `sandbox_failed`, `unavailable` */
export function routeOfAccess(access: Access): Route {
  if (access.status !== 'ready' || access.route === null) throw refusal(access.status, access.status_reason)
  return access.route
}

/**
 * Browsers send `Origin` with every WebSocket and let any page open one. A page is let in only when its origin is in an exact list,
 * which is empty unless the operator names one.
 */
import { CodedError } from '@sandglass/contract'

/** @throws CodedError `forbidden` */
export function requireOrigin(origin: string | undefined, allowed: ReadonlySet<string>): void {
  if (origin !== undefined && !allowed.has(origin)) throw new CodedError('forbidden', 'This origin may not open sessions here.')
}

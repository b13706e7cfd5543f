/** Names stand wherever ids do, so a name may never look like an id. */
import { CodedError, ID_PATTERNS, parseSandboxId } from '@sandglass/contract'

/** @throws CodedError `invalid_request` when the name has the shape of a sandbox id */
export function assertNotIdShaped(name: string): void {
  if (parseSandboxId(name) === undefined) return
  throw new CodedError('invalid_request', `/name must not have the shape of a sandbox id (${ID_PATTERNS.sandbox}).`, {
    errors: [{ path: '/name', message: 'must not have the shape of a sandbox id' }],
  })
}

/** Who a guest is told to be. */
import { parserOf } from '@sandglass/contract'
import Type from 'typebox'
import type { Owner } from './runtime.ts'

const identities = parserOf(Type.Object({ sandbox: Type.String(), generation: Type.Integer({ minimum: 0 }) }))

/** @throws CodedError when it says no such thing */
export function identityOf(body: unknown): Owner {
  const { sandbox, generation } = identities.parse(body)
  return { sandbox, generation }
}

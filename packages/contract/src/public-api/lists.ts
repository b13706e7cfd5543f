/** Lists of the public API: pages with a cursor. */
import Type, { type TSchema } from 'typebox'
import { ApiKeySchema } from '../api-key.ts'
import { HostSchema } from '../host.ts'
import { JoinTokenSchema } from '../join-token.ts'
import { LIMITS } from '../limits.ts'
import { SandboxSchema } from '../sandbox.ts'
import { closed, nullable } from '../schema.ts'
import { TemplateSchema } from '../template.ts'

/** A page of a list. */
export const page = {
  cursor: Type.Optional(Type.String({ maxLength: 256 })),
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: LIMITS.pageItems, default: LIMITS.pageItemsDefault })),
}
const listOf = <S extends TSchema>(item: S, name: string) => closed({ items: Type.Array(item), next_cursor: nullable(Type.String()) }, { $id: name })

export const SandboxListSchema = listOf(SandboxSchema, 'SandboxList')
export const TemplateListSchema = listOf(TemplateSchema, 'TemplateList')
export const HostListSchema = listOf(HostSchema, 'HostList')
export const JoinTokenListSchema = listOf(JoinTokenSchema, 'JoinTokenList')
export const ApiKeyListSchema = listOf(ApiKeySchema, 'ApiKeyList')

export const PageQuerySchema = closed(page)

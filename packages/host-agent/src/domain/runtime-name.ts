/**
 * The name of one runtime: a sandbox and the generation it was started for, or a pool member, which keeps its own name when a sandbox gets it.
 *
 * Everything a runtime leaves on the machine (directory, cgroup, network namespace, processes) carries this name beside the installation's,
 * so that what is found can be matched with a record without asking the runtime, and a newer generation never collides with an older one.
 */
import { CANARY_REGION, ID_PATTERNS, type PoolMemberId } from '@sandglass/contract'

declare const brand: unique symbol
export type RuntimeName = string & { readonly [brand]: 'runtime-name' }

export type RuntimeKey = { readonly sandbox: string; readonly generation: number }

export type ParsedRuntimeName =
  | (RuntimeKey & { readonly kind: 'sandbox'; readonly name: RuntimeName })
  | { readonly kind: 'member'; readonly name: RuntimeName }

const OF_SANDBOX = new RegExp(`^(${ID_PATTERNS.sandbox.slice(1, -1)})-g(0|[1-9][0-9]{0,14})$`)
const OF_MEMBER = new RegExp(ID_PATTERNS.poolMember)

/** What begins like a name and may be one: for names that stand inside of others. */
export const RUNTIME_NAME_SHAPE = 'sb[a-z0-9]+-g[0-9]+|pm[a-z2-7]+'

function isRuntimeName(text: string): text is RuntimeName {
  return OF_SANDBOX.test(text) || OF_MEMBER.test(text)
}

/** @throws TypeError when the key could not have come from a ticket */
export function runtimeName(key: RuntimeKey): RuntimeName {
  const text = `${key.sandbox}-g${key.generation}`
  if (!isRuntimeName(text)) throw new TypeError(`not the key of a runtime: ${text}`)
  return text
}

/** It is nobody's, and runs before this host has a lease. @param name or the id of its sandbox */
export const isCanary = (name: string): boolean => name.startsWith(`sb${CANARY_REGION}`)

export function memberName(id: PoolMemberId): RuntimeName {
  const text: string = id
  if (!isRuntimeName(text)) throw new TypeError(`not the id of a pool member: ${text}`)
  return text
}

export function parseRuntimeName(text: string): ParsedRuntimeName | undefined {
  if (!isRuntimeName(text)) return undefined
  const [, sandbox, generation] = OF_SANDBOX.exec(text) ?? []
  if (sandbox === undefined) return { kind: 'member', name: text }
  return { kind: 'sandbox', sandbox, generation: Number(generation), name: text }
}

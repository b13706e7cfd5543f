/**
 * Identifiers.
 *
 * Every id is a kind prefix plus lower-case base32 (RFC 4648 alphabet, no padding, no punctuation), so a sandbox id is
 * a DNS label and can stand in a host name, a cgroup path or a file name unescaped. A sandbox id carries the
 * two-character tag of its region, because a request must find its region without a lookup.
 * Branded types keep a host id from being passed where a sandbox id is meant; only `parse*` and `new*` make one.
 */

declare const brand: unique symbol
/** A string that was checked to be an id of one kind. */
export type Id<Kind extends string> = string & { readonly [brand]: Kind }

export type SandboxId = Id<'sandbox'>
export type OperationId = Id<'operation'>
export type ProcessId = Id<'process'>
export type HostId = Id<'host'>
export type TenantId = Id<'tenant'>
export type ApiKeyId = Id<'api-key'>
export type TemplateVersionId = Id<'template-version'>
export type RequestId = Id<'request'>
export type AssignmentId = Id<'assignment'>
export type PoolMemberId = Id<'pool-member'>
export type JoinTokenId = Id<'join-token'>

/** Fills and returns a buffer of `size` random bytes; `crypto.randomBytes` in production. */
export type RandomBytes = (size: number) => Uint8Array

const ALPHABET = 'abcdefghijklmnopqrstuvwxyz234567'
const RANDOM_CHARACTERS = 16

/** JSON-schema patterns, shared by schemas and parsers. */
export const ID_PATTERNS = {
  sandbox: '^sb[a-z0-9]{2}[a-z2-7]{16}$',
  operation: '^op[a-z2-7]{16}$',
  process: '^pr[a-z2-7]{16}$',
  host: '^ho[a-z2-7]{16}$',
  tenant: '^te[a-z2-7]{16}$',
  apiKey: '^ak[a-z2-7]{16}$',
  templateVersion: '^tv[a-z2-7]{16}$',
  request: '^rq[a-z2-7]{16}$',
  assignment: '^as[a-z2-7]{16}$',
  poolMember: '^pm[a-z2-7]{16}$',
  joinToken: '^jt[a-z2-7]{16}$',
} as const

/** 80 random bits as 16 base32 characters. */
export function randomBase32(random: RandomBytes): string {
  const bytes = random(RANDOM_CHARACTERS)
  let text = ''
  for (const byte of bytes) text += ALPHABET.charAt(byte & 31)
  return text
}

function makeId<Kind extends string>(prefix: string, random: RandomBytes): Id<Kind> {
  return `${prefix}${randomBase32(random)}` as Id<Kind>
}

function parser<Kind extends string>(pattern: string): (text: string) => Id<Kind> | undefined {
  const expression = new RegExp(pattern)
  return (text) => (expression.test(text) ? (text as Id<Kind>) : undefined)
}

/** Kept for canaries of hosts, which are nobody's and run without a lease: no region is called so. */
export const CANARY_REGION = '00'

/** @param regionTag two characters, `[a-z0-9]{2}` */
export function newSandboxId(regionTag: string, random: RandomBytes): SandboxId {
  return makeId(`sb${regionTag}`, random)
}
export const newOperationId = (random: RandomBytes): OperationId => makeId('op', random)
export const newProcessId = (random: RandomBytes): ProcessId => makeId('pr', random)
export const newHostId = (random: RandomBytes): HostId => makeId('ho', random)
export const newTenantId = (random: RandomBytes): TenantId => makeId('te', random)
export const newApiKeyId = (random: RandomBytes): ApiKeyId => makeId('ak', random)
export const newTemplateVersionId = (random: RandomBytes): TemplateVersionId => makeId('tv', random)
export const newRequestId = (random: RandomBytes): RequestId => makeId('rq', random)
export const newAssignmentId = (random: RandomBytes): AssignmentId => makeId('as', random)
export const newPoolMemberId = (random: RandomBytes): PoolMemberId => makeId('pm', random)
export const newJoinTokenId = (random: RandomBytes): JoinTokenId => makeId('jt', random)

export const parseSandboxId = parser<'sandbox'>(ID_PATTERNS.sandbox)
export const parseOperationId = parser<'operation'>(ID_PATTERNS.operation)
export const parseProcessId = parser<'process'>(ID_PATTERNS.process)
export const parseHostId = parser<'host'>(ID_PATTERNS.host)
export const parseTenantId = parser<'tenant'>(ID_PATTERNS.tenant)
export const parseApiKeyId = parser<'api-key'>(ID_PATTERNS.apiKey)
export const parseTemplateVersionId = parser<'template-version'>(ID_PATTERNS.templateVersion)
export const parseRequestId = parser<'request'>(ID_PATTERNS.request)
export const parseAssignmentId = parser<'assignment'>(ID_PATTERNS.assignment)
export const parsePoolMemberId = parser<'pool-member'>(ID_PATTERNS.poolMember)

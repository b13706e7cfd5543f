/**
 * What a client says about the version or the part that it wants (RFC 9110, 13 and 14), as headers for the guest, which knows strong tags and one range.
 * Pure.
 *
 * A range is for GET only. `If-Range` is a range together with its version: the guest is asked for both, and `elseWhole` is what to ask when the file is
 * another one by now; a date or a weak tag there can prove nothing, so the whole file is sent.
 */
import type { IncomingHttpHeaders } from 'node:http'
import { CodedError } from '@sandglass/contract'

export type FileHeaders = { readonly range?: string; readonly 'if-match'?: string; readonly 'if-none-match'?: string }
export type Conditions = { readonly headers: FileHeaders; readonly elseWhole: FileHeaders | undefined }

const TAGS = /^(?:\s*,)*\s*(?:W\/)?"[!#-~\x80-\xff]*"(?:\s*,(?:\s*(?:W\/)?"[!#-~\x80-\xff]*")?)*\s*$/
const TAG = /(W\/)?("[!#-~\x80-\xff]*")/g
const STRONG_TAG = /^"[!#-~\x80-\xff]*"$/
/** Matches nothing that exists. */
const NO_TAG = '""'

/** @throws CodedError `invalid_request` for tags that are none */
export function conditionsOf(method: string | undefined, asked: IncomingHttpHeaders): Conditions {
  // Compared strongly: a weak tag is never the version that is there.
  const match = tagsOf('if-match', asked['if-match'])
  // Compared weakly: the mark makes no difference.
  const noneMatch = tagsOf('if-none-match', asked['if-none-match'])
  const versions: FileHeaders = {
    ...(match === undefined ? {} : { 'if-match': listOf(match.filter(({ isWeak }) => !isWeak)) }),
    ...(noneMatch === undefined ? {} : { 'if-none-match': listOf(noneMatch) }),
  }
  const range = method === 'GET' ? asked.range?.replace(/^\s*bytes=/i, 'bytes=') : undefined
  const ifRange = asked['if-range']?.toString().trim()
  if (range === undefined) return { headers: versions, elseWhole: undefined }
  if (ifRange === undefined) return { headers: { ...versions, range }, elseWhole: undefined }
  if (match !== undefined || !STRONG_TAG.test(ifRange)) return { headers: versions, elseWhole: undefined }
  return { headers: { ...versions, range, 'if-match': ifRange.includes(',') ? NO_TAG : ifRange }, elseWhole: versions }
}

type Tag = { readonly text: string; readonly isWeak: boolean }

function tagsOf(name: 'if-match' | 'if-none-match', value: string | undefined): readonly Tag[] | undefined {
  if (value === undefined) return undefined
  if (value.trim() === '*') return [{ text: '*', isWeak: false }]
  if (!TAGS.test(value)) {
    throw new CodedError('invalid_request', `${name} must be * or a list of quoted tags.`, {
      errors: [{ path: `/headers/${name}`, message: 'must be * or a list of quoted tags' }],
    })
  }
  return [...value.matchAll(TAG)].map((found) => ({ text: found[2] ?? NO_TAG, isWeak: found[1] !== undefined }))
}

/** Tags of files have no comma, and the guest takes one for the end of a tag. */
function listOf(tags: readonly Tag[]): string {
  const own = tags.filter(({ text }) => !text.includes(','))
  return own.length === 0 ? NO_TAG : own.map(({ text }) => text).join(', ')
}

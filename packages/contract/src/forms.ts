/**
 * Forms of text that people type, each with its pattern and in words: a regular expression helps nobody who typed something else, so a refusal
 * says the words.
 */
import { LIMITS } from './limits.ts'

const form = (pattern: string, words: string) => ({ pattern, words })

const FORMS = {
  sandboxName: form(
    `^[a-z][a-z0-9-]{0,${LIMITS.nameCharacters - 1}}$`,
    `must begin with a lower-case letter and go on with a-z, 0-9 and -, at most ${LIMITS.nameCharacters} characters`,
  ),
  templateReference: form('^[a-z][a-z0-9-]{0,62}(@sha256:[0-9a-f]{64})?$', 'must be the name of a template, or name@sha256: and its digest'),
  absolutePath: form('^/[^\\u0000]*$', 'must be an absolute path, such as /workspace'),
  noNul: form('^[^\\u0000]*$', 'must hold no NUL character: write such bytes to a file'),
  processKey: form(`^[A-Za-z0-9._:-]{1,${LIMITS.processKeyCharacters}}$`, `must be 1 to ${LIMITS.processKeyCharacters} of A-Z, a-z, 0-9 and ._:-`),
  mode: form('^[0-7]{3,4}$', 'must be three or four octal digits, such as 0644'),
  apiKeyName: form('^[A-Za-z0-9._ -]+$', 'must be of A-Z, a-z, 0-9, space and ._-'),
  hostLabelValue: form(
    `^[A-Za-z0-9._-]{1,${LIMITS.hostLabelValueCharacters}}$`,
    `must be 1 to ${LIMITS.hostLabelValueCharacters} of A-Z, a-z, 0-9 and ._-, or null to take the label away`,
  ),
} as const

export const PATTERNS = {
  sandboxName: FORMS.sandboxName.pattern,
  templateReference: FORMS.templateReference.pattern,
  absolutePath: FORMS.absolutePath.pattern,
  noNul: FORMS.noNul.pattern,
  processKey: FORMS.processKey.pattern,
  mode: FORMS.mode.pattern,
  apiKeyName: FORMS.apiKeyName.pattern,
  hostLabelValue: FORMS.hostLabelValue.pattern,
} as const satisfies Record<keyof typeof FORMS, string>

const WORDS: ReadonlyMap<string, string> = new Map(Object.values(FORMS).map(({ pattern, words }) => [pattern, words]))

/** What text of a pattern must be, in words; undefined for patterns that nobody types. */
export const wordsOf = (pattern: unknown): string | undefined => (typeof pattern === 'string' ? WORDS.get(pattern) : undefined)

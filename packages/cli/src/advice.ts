/**
 * What to do next, in words of the command line. The registry's advice speaks of HTTP requests, and a server's own sentence often names only
 * what is wrong; whoever reads it here has a shell in front of them.
 */
import { ERRORS, type ErrorCode } from '@sandglass/contract/errors'

const ADVICE: Partial<Record<ErrorCode, string>> = {
  sandbox_not_found: 'See `sandglass ls`.',
  sandbox_stopped: 'Start it with `sandglass start ID`; it begins with an empty writable layer.',
  sandbox_failed: 'Start it anew with `sandglass start`, or delete it with `sandglass rm` and create another.',
  name_taken: 'Choose another, or end that one with `sandglass rm NAME`.',
  template_not_found: 'See `sandglass template ls`.',
  isolation_unavailable: 'Use `--isolation auto`; `sandglass status` shows what is proved.',
  unschedulable_never: 'Ask for less.',
  host_not_found: 'See `sandglass host ls`.',
  host_ambiguous: 'See `sandglass host ls`.',
  host_in_use: 'Empty it with `sandglass host drain HOST`, and remove it then.',
  api_key_not_found: 'See `sandglass key ls`.',
  process_not_found: 'See `sandglass ps ID`.',
  process_exited: 'Read what it printed with `sandglass output ID PROCESS`.',
  unauthenticated: 'Give a key that is valid: SANDGLASS_API_KEY or --api-key-file.',
}

/** These come with sentences of their own that already say what to do. */
const ONLY_INSTEAD: ReadonlySet<ErrorCode> = new Set(['unauthenticated', 'host_in_use'])

/** The sentence with its advice: instead of the registry's where it ends with that, else behind it. */
export function withAdvice(code: ErrorCode, sentence: string): string {
  const advice = ADVICE[code]
  if (advice === undefined) return sentence
  const { next } = ERRORS[code]
  if (sentence.endsWith(next)) return `${sentence.slice(0, -next.length)}${advice}`
  if (ONLY_INSTEAD.has(code)) return sentence
  return `${sentence}${/[.!?]$/.test(sentence) ? '' : '.'} ${advice}`
}

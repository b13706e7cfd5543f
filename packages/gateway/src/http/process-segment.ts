/** How a process is named in paths: its id, or `key:` and its key. Every character of both may stand in a path as it is. */
import { CodedError, ID_PATTERNS, PROCESS_KEY_PATTERN } from '@sandglass/contract'

const PROCESS_ID = new RegExp(ID_PATTERNS.process)
const PROCESS_KEY = new RegExp(PROCESS_KEY_PATTERN)

export function isProcessId(text: string): boolean {
  return PROCESS_ID.test(text)
}

/** Checked and ready for a path of the guest protocol. @throws CodedError `process_not_found` */
export function processSegment(text: string): string {
  const isKey = text.startsWith('key:') && PROCESS_KEY.test(text.slice('key:'.length))
  if (!isKey && !isProcessId(text)) throw new CodedError('process_not_found', 'This is neither the id of a process nor `key:` and a process key.')
  return text
}

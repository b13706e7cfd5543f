/** This process's own hard limit of open files: what it starts can be given less, never more. */
import { readFileSync } from 'node:fs'

export function openFilesHard(): number {
  const hard = /^Max open files\s+\S+\s+(\S+)/m.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1]
  return hard === undefined || hard === 'unlimited' ? Number.MAX_SAFE_INTEGER : Number(hard)
}

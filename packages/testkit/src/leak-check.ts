/**
 * What a process holds: open files and sockets, child processes, and what keeps its event loop alive. Taken before and after, it shows what was not
 * given back.
 */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'

export type Holdings = { readonly files: readonly string[]; readonly children: readonly string[]; readonly resources: readonly string[] }

export function holdings(): Holdings {
  return { files: openFiles(), children: childProcesses(), resources: process.getActiveResourcesInfo().toSorted() }
}

/** One line for each thing held now and not before. Kinds are counted; which socket it is does not matter. */
export function leaks(before: Holdings, now: Holdings = holdings()): string[] {
  return [
    ...more('file', before.files, now.files),
    ...more('child process', before.children, now.children),
    ...more('resource', before.resources, now.resources),
  ]
}

function more(what: string, before: readonly string[], now: readonly string[]): string[] {
  const count = (list: readonly string[], kind: string): number => list.filter((one) => one === kind).length
  return [...new Set(now)].flatMap((kind) => {
    const extra = count(now, kind) - count(before, kind)
    return extra > 0 ? [`${what} ${kind} (${extra} more)`] : []
  })
}

function openFiles(): string[] {
  return readdirSync('/proc/self/fd')
    .flatMap((name) => {
      try {
        // Sockets and pipes by kind, without their numbers.
        return [readlinkSync(`/proc/self/fd/${name}`).replace(/:\[\d+\]$/, '')]
      } catch {
        // The descriptor of this very listing.
        return []
      }
    })
    .filter((target) => !target.startsWith('/proc/'))
    .toSorted()
}

function childProcesses(): string[] {
  return readdirSync('/proc/self/task')
    .flatMap((task) => readFileSync(`/proc/self/task/${task}/children`, 'utf8').split(' '))
    .filter((pid) => pid.trim() !== '')
    .toSorted()
}

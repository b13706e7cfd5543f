/** Reading the roles' logs: the last lines, then, when followed, whatever is appended, across rotation. */
import { closeSync, existsSync, fstatSync, openSync, readSync, statSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { paths } from './installation.ts'

export type LogLine = { readonly role: string; readonly line: string }

export type LogQuery = {
  readonly home: string
  readonly roles: readonly string[]
  /** Last lines of each role. */
  readonly lines: number
  readonly follow: boolean
  readonly signal?: AbortSignal
}

const TAIL_BYTES_MAX = 4 * 1024 * 1024
const POLL_MS = 200

type Position = { inode: number; offset: number; rest: string }

function readFrom(file: number, from: number, to: number): Buffer {
  const buffer = Buffer.alloc(Math.max(0, to - from))
  const got = buffer.byteLength === 0 ? 0 : readSync(file, buffer, 0, buffer.byteLength, from)
  return buffer.subarray(0, got)
}

function tail(path: string, lines: number): { lines: string[]; position: Position } {
  if (!existsSync(path)) return { lines: [], position: { inode: 0, offset: 0, rest: '' } }
  const file = openSync(path, 'r')
  try {
    const { size, ino } = fstatSync(file)
    const text = readFrom(file, Math.max(0, size - TAIL_BYTES_MAX), size).toString('utf8')
    const all = text.split('\n')
    const rest = all.pop() ?? ''
    return { lines: lines === 0 ? [] : all.slice(-lines), position: { inode: ino, offset: size, rest } }
  } finally {
    closeSync(file)
  }
}

/** Lines added since; a file that was moved aside is begun anew. */
function more(path: string, position: Position): string[] {
  const now = statSync(path, { throwIfNoEntry: false })
  if (now === undefined) return []
  if (now.ino !== position.inode || now.size < position.offset) Object.assign(position, { inode: now.ino, offset: 0, rest: '' })
  if (now.size === position.offset) return []
  const file = openSync(path, 'r')
  try {
    const bytes = readFrom(file, position.offset, Math.min(now.size, position.offset + TAIL_BYTES_MAX))
    position.offset += bytes.byteLength
    const lines = (position.rest + bytes.toString('utf8')).split('\n')
    position.rest = lines.pop() ?? ''
    return lines
  } finally {
    closeSync(file)
  }
}

export async function* readLogs(query: LogQuery): AsyncGenerator<LogLine, void, void> {
  const positions = new Map<string, Position>()
  for (const role of query.roles) {
    const end = tail(paths.log(query.home, role), query.lines)
    positions.set(role, end.position)
    for (const line of end.lines) yield { role, line }
  }
  while (query.follow && query.signal?.aborted !== true) {
    for (const [role, position] of positions) for (const line of more(paths.log(query.home, role), position)) yield { role, line }
    await delay(POLL_MS, undefined, { signal: query.signal }).catch(() => undefined)
  }
}

/** The query of a terminal, as the opening of its session: a new shell, or one that is there. */
import { CodedError, PROCESS_KEY_PATTERN, PUBLIC_ROUTES, parserOf, type StartProcess, type TerminalSize, TerminalSizeSchema } from '@sandglass/contract'
import { processSegment } from '../http/process-segment.ts'
import { parseQuery, type Query } from '../http/raw-query.ts'
import type { Opening } from './opening.ts'

const query = parserOf(PUBLIC_ROUTES.terminal.query)
const size = parserOf(TerminalSizeSchema)
const KEY = new RegExp(PROCESS_KEY_PATTERN)

const DEFAULT_SIZE: TerminalSize = { cols: 80, rows: 24 }
const DEFAULT_SHELLS = [
  ['/bin/bash', '-l'],
  ['/bin/sh', '-l'],
] as const

/** @param newKey for a shell whose client gave no key @throws CodedError `invalid_request`, `process_not_found` */
export function terminalOpening(url: string, newKey: () => string): Opening {
  const values = parseQuery(url, query)
  return values['id'] === undefined ? newShell(values, newKey) : existingTerminal(values, values['id'])
}

function newShell(values: Query, newKey: () => string): Opening {
  if (values['since'] !== undefined) throw wrong('since', 'needs `id`: a new terminal has no output to come back to')
  for (const name of ['takeover', 'view'] as const) {
    if (values[name] !== undefined) throw wrong(name, 'needs `id`: nobody else is in a new terminal')
  }
  const { shell, cwd, user } = values
  const key = values['key'] ?? newKey()
  if (!KEY.test(key)) throw wrong('key', 'is not a process key')
  const common = {
    key,
    tty: sizeOf(values) ?? DEFAULT_SIZE,
    stdin: true,
    ...(cwd === undefined ? {} : { cwd }),
    ...(user === undefined ? {} : { user }),
  }
  const argvs = shell === undefined ? DEFAULT_SHELLS : [[shell, '-l']]
  const processes: StartProcess[] = argvs.map((argv) => ({ ...common, argv: [...argv] }))
  return { type: 'start', processes, killOnDisconnect: false, mustBeTerminal: true }
}

function existingTerminal(values: Query, id: string): Opening {
  for (const name of ['user', 'cwd', 'shell', 'key'] as const) {
    if (values[name] !== undefined) throw wrong(name, 'is for new terminals; this one is named by `id`')
  }
  if (values['view'] === '1') {
    for (const name of ['takeover', 'cols', 'rows'] as const) if (values[name] !== undefined) throw wrong(name, 'is not for who only watches')
  }
  return {
    type: 'attach',
    process: processSegment(id),
    since: { stdout: Number(values['since'] ?? '0'), stderr: 0 },
    wantsStdin: values['view'] !== '1',
    takesOver: values['takeover'] === '1',
    size: sizeOf(values),
    mustBeTerminal: true,
  }
}

function sizeOf({ cols, rows }: Query): TerminalSize | undefined {
  if (cols === undefined && rows === undefined) return undefined
  return size.parse({ cols: Number(cols ?? DEFAULT_SIZE.cols), rows: Number(rows ?? DEFAULT_SIZE.rows) })
}

function wrong(name: string, message: string): CodedError {
  return new CodedError('invalid_request', `/${name} ${message}.`, { errors: [{ path: `/${name}`, message }] })
}

/** What could stand where the cursor is: a list, or what has to be asked for. Pure. */
import { RESTART_POLICIES, SANDBOX_STATUSES } from '@sandglass/contract/sandbox'
import type { Grammar } from './grammar.ts'

export type Wanted =
  | { readonly type: 'words'; readonly words: readonly string[] }
  | { readonly type: 'sandboxes' }
  | { readonly type: 'templates' }
  | { readonly type: 'profiles' }
  | { readonly type: 'keys' }
  | { readonly type: 'hosts' }
  | { readonly type: 'join-tokens' }
  | { readonly type: 'processes'; readonly sandbox: string }
  /** Files of this machine: the shell knows them best. */
  | { readonly type: 'files' }
  /** One side of a copy: a file here, or `ID:path`. */
  | { readonly type: 'places' }
  /** A path in a sandbox; `typed` is what stands behind the colon. */
  | { readonly type: 'remote'; readonly sandbox: string; readonly typed: string }

export type Completion = {
  readonly wanted: readonly Wanted[]
  /** What the word at the cursor begins with. */
  readonly prefix: string
  /** Stands in front of each candidate: `--template=`. */
  readonly lead: string
  /** Values of options that say which server to ask. */
  readonly server: { readonly url?: string; readonly 'api-key-file'?: string; readonly profile?: string }
}

const CLOSED: Readonly<Record<string, readonly string[]>> = {
  '--isolation': ['auto', 'gvisor', 'fake'],
  '--network': ['none'],
  '--restart': RESTART_POLICIES,
  '--stream': ['stdout', 'stderr'],
  '--role': ['viewer', 'member', 'owner', 'operator'],
  '--signal': ['HUP', 'INT', 'QUIT', 'KILL', 'USR1', 'USR2', 'TERM', 'CONT', 'STOP', 'WINCH'],
  '--status': SANDBOX_STATUSES,
}
const ROLES = ['postgres', 'control-plane', 'gateway', 'host-agent']
const SHELLS = ['bash', 'zsh', 'fish']
const NOTHING: Wanted = { type: 'words', words: [] }

/** @param words of the line behind the program, the last is the one at the cursor, perhaps empty */
export function planCompletion(names: readonly string[], grammarOf: (name: string) => Grammar, words: readonly string[]): Completion {
  const current = words.at(-1) ?? ''
  const before = words.slice(0, -1)
  const name = [3, 2, 1].map((count) => before.slice(0, count).join(' ')).find((candidate) => names.includes(candidate))
  const server = serverOf(before)
  if (name === undefined) return { wanted: [{ type: 'words', words: nextWords(names, before) }], prefix: current, lead: '', server }
  const rest = before.slice(name.split(' ').length)
  // Behind `--` stands somebody else's command.
  if (rest.includes('--')) return { wanted: [NOTHING], prefix: current, lead: '', server }
  const grammar = grammarOf(name)
  const { operands, open } = read(grammar, rest)
  const joined = /^(--[a-z-]+)=(.*)$/s.exec(current)
  if (open !== undefined) return { wanted: [wantedBy(grammar, open, operands)], prefix: current, lead: '', server }
  if (joined?.[1] !== undefined) return { wanted: [wantedBy(grammar, joined[1], operands)], prefix: joined[2] ?? '', lead: `${joined[1]}=`, server }
  if (current.startsWith('-')) return { wanted: [{ type: 'words', words: [...grammar.options.keys()] }], prefix: current, lead: '', server }
  return { wanted: operandAt(grammar, operands, current), prefix: current, lead: '', server }
}

/** Names of commands have one to three words; the next one that some name goes on with. */
function nextWords(names: readonly string[], before: readonly string[]): string[] {
  const typed = before.map((word) => `${word} `).join('')
  const going = names.filter((name) => name.startsWith(typed)).map((name) => name.split(' ')[before.length] ?? '')
  return [...new Set(going)].filter((word) => word !== '')
}

/** Operands so far, and the option that still waits for its value. */
function read(grammar: Grammar, words: readonly string[]): { operands: string[]; open: string | undefined } {
  const operands: string[] = []
  let open: string | undefined
  for (const word of words) {
    if (open !== undefined) open = undefined
    else if (!word.startsWith('-')) operands.push(word)
    else if (grammar.options.get(word) !== undefined) open = word
  }
  return { operands, open }
}

function wantedBy(grammar: Grammar, option: string, operands: readonly string[]): Wanted {
  const takes = grammar.options.get(option)
  // Its usage names every word that it takes.
  if (takes?.includes('|')) return { type: 'words', words: takes.split('|') }
  const closed = CLOSED[option]
  if (closed !== undefined) return { type: 'words', words: closed }
  if (option === '--template') return { type: 'templates' }
  if (option === '--attach') return operands[0] === undefined ? NOTHING : { type: 'processes', sandbox: operands[0] }
  if (takes === 'PROFILE') return { type: 'profiles' }
  return takes === 'FILE' ? { type: 'files' } : NOTHING
}

const REMOTE = /^([a-z0-9][a-z0-9-]*):(.*)$/s

function operandAt(grammar: Grammar, operands: readonly string[], current: string): Wanted[] {
  const index = grammar.repeats ? Math.min(operands.length, grammar.operands.length - 1) : operands.length
  switch (grammar.operands[index]) {
    case 'ID':
      return [{ type: 'sandboxes' }]
    case 'PROCESS':
      return [{ type: 'processes', sandbox: operands[0] ?? '' }]
    case 'PROFILE':
      return [{ type: 'profiles' }]
    case 'KEY':
      return [{ type: 'keys' }]
    case 'HOST':
      return [{ type: 'hosts' }]
    case 'TOKEN':
      return [{ type: 'join-tokens' }]
    case 'LABEL':
      return [{ type: 'words', words: ['zone=', 'class='] }]
    case 'ROLE':
      return [{ type: 'words', words: ROLES }]
    case 'SHELL':
      return [{ type: 'words', words: SHELLS }]
    case 'PLACE':
    case 'SRC':
    case 'DST': {
      const [, sandbox, typed] = REMOTE.exec(current) ?? []
      if (sandbox !== undefined && typed !== undefined) return [{ type: 'remote', sandbox, typed }]
      return grammar.operands[index] === 'PLACE' ? [{ type: 'places' }] : [{ type: 'files' }, { type: 'places' }]
    }
    default:
      return [NOTHING]
  }
}

function serverOf(words: readonly string[]): Completion['server'] {
  const server: { url?: string; 'api-key-file'?: string; profile?: string } = {}
  for (const [index, word] of words.entries()) {
    const [, name, joined] = /^--(url|api-key-file|profile)(?:=(.*))?$/s.exec(word) ?? []
    const value = joined ?? words[index + 1]
    if (value !== undefined && (name === 'url' || name === 'api-key-file' || name === 'profile')) server[name] = value
  }
  return server
}

/** `complete`: what could stand at the end of a line, for the scripts of `completion`. Never fails: a prompt is no place for errors. */
import type { Command } from '../command.ts'
import { COMMANDS } from '../commands.ts'
import { candidatesOf } from '../completion/candidates.ts'
import { type Grammar, grammarOf } from '../completion/grammar.ts'
import { planCompletion } from '../completion/plan.ts'
import { unquote } from '../completion/unquote.ts'
import type { Io } from '../io.ts'

export const command: Command = {
  usage: 'complete -- WORD…',
  help: 'Prints what could stand in place of the last word, one candidate a line. Used by the scripts that completion prints.',
  run,
}

/** They look at this machine, not at a server. */
const LOCAL = /^(up|down|logs|doctor|bench|test|completion|config .*)$/

async function run(io: Io, argv: readonly string[]): Promise<number> {
  const words = argv.slice(argv.indexOf('--') + 1).map(unquote)
  const entries = COMMANDS.filter((entry) => entry.hidden !== true)
  const named = entries.filter(({ name }) => words.join(' ').startsWith(`${name} `))
  const grammars = new Map<string, Grammar>()
  for (const { name, load } of named) grammars.set(name, grammarOf(name, (await load()).command, !LOCAL.test(name)))
  const nothing: Grammar = { options: new Map(), operands: [], repeats: false }
  const completion = planCompletion(
    entries.map(({ name }) => name),
    (name) => grammars.get(name) ?? nothing,
    words,
  )
  const candidates = await candidatesOf(completion, io.environment)
  const files = completion.wanted.some(({ type }) => type === 'files') ? [':files'] : []
  await io.stdout.write([...files, ...candidates].map((line) => `${line}\n`).join(''))
  return 0
}

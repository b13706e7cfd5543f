/** Commands of two words share their first: `key` alone is none of them, and asks for the list. */
import { COMMANDS } from './commands.ts'
import { UsageError } from './usage-error.ts'

/** What `sandglass key` and `sandglass key --help` print. @throws UsageError for a first word that is nobody's, or a second that is unknown */
export function familyHelp(argv: readonly string[], wantsHelp: boolean): string {
  const [first = '', second] = argv
  const family = COMMANDS.filter((entry) => entry.name.startsWith(`${first} `))
  if (family.length === 0) throw new UsageError(`there is no command '${first}'`)
  if (second !== undefined && !wantsHelp) {
    throw new UsageError(`there is no command '${first} ${second}'; there is ${family.map((entry) => entry.name).join(', ')}`)
  }
  const longest = Math.max(...family.map((entry) => entry.name.length))
  const lines = family.map((entry) => `  ${entry.name.padEnd(longest)}  ${entry.summary}\n`)
  return `${lines.join('')}\nsandglass ${family[0]?.name ?? first} --help tells more.\n`
}

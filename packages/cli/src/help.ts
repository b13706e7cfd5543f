/** What `sandglass --help` says. */
import type { Command } from './command.ts'
import { COMMANDS } from './commands.ts'

export function overview(): string {
  const shown = COMMANDS.filter((entry) => entry.hidden !== true)
  const longest = Math.max(...shown.map((entry) => entry.name.length))
  return `Sandglass: isolated machines for code that you do not trust.

usage: sandglass COMMAND [options]

${shown.map((entry) => `  ${entry.name.padEnd(longest)}  ${entry.summary}`).join('\n')}

sandglass COMMAND --help tells more. Every command takes --json (the API's objects; lists as an array, with --json=lines one
object a line). Commands that speak to a server take --url, --api-key-file and --profile (or SANDGLASS_PROFILE); without them
SANDGLASS_URL and SANDGLASS_API_KEY count, then the current profile (config use), then the installation in SANDGLASS_HOME
(/var/lib/sandglass). Where an id stands, a name does too.

Exit codes: the command's own; 124 it timed out, 125 Sandglass refused or failed, 126 it cannot be executed, 127 it was not found,
128+n signal n ended it.
`
}

export function commandHelp(command: Command): string {
  return `usage: sandglass ${command.usage}\n\n${command.help.trim()}\n`
}

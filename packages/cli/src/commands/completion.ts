/** `completion`: what makes a shell complete command lines of this program. */
import { COMMON_OPTIONS, noMoreThan, oneOfWords, operand, parseArguments } from '../arguments.ts'
import type { Command } from '../command.ts'
import { SCRIPTS } from '../completion/scripts.ts'
import type { Io } from '../io.ts'
import { UsageError } from '../usage-error.ts'

export const command: Command = {
  usage: 'completion SHELL',
  help: `Prints what makes a shell complete commands, options, ids, names, processes, templates, profiles and paths in sandboxes.

  bash   source <(sandglass completion bash), in ~/.bashrc
  zsh    source <(sandglass completion zsh), in ~/.zshrc behind compinit
  fish   sandglass completion fish > ~/.config/fish/completions/sandglass.fish`,
  run,
}

async function run(io: Io, argv: readonly string[]): Promise<number> {
  const { operands } = parseArguments(argv, COMMON_OPTIONS)
  const shell = oneOfWords('SHELL', operand(operands, 0, 'SHELL'), ['bash', 'zsh', 'fish'])
  noMoreThan(operands, 1)
  if (shell === undefined) throw new UsageError('SHELL is missing')
  await io.stdout.write(SCRIPTS[shell])
  return 0
}

/** `config get`: one profile, without its key. */
import { COMMON_OPTIONS, formatOf, noMoreThan, parseArguments } from '../arguments.ts'
import type { Command } from '../command.ts'
import type { Io } from '../io.ts'
import { printObject } from '../print.ts'
import { profileNamed } from '../profiles/choose.ts'
import { readConfig } from '../profiles/config-file.ts'
import { renderFields } from '../table.ts'
import { UsageError } from '../usage-error.ts'

export const command: Command = { usage: 'config get [PROFILE]', help: 'Shows a profile, by default the current one. Its key is not shown.', run }

async function run(io: Io, argv: readonly string[]): Promise<number> {
  const { values, operands } = parseArguments(argv, COMMON_OPTIONS)
  noMoreThan(operands, 1)
  const config = readConfig(io.environment)
  const name = operands[0] ?? config.current
  if (name === null) throw new UsageError('no profile is current; name one, or choose one with `sandglass config use PROFILE`')
  const shown = { name, url: profileNamed(config, name).url, current: name === config.current }
  await printObject(io, formatOf(values), shown, (item) =>
    renderFields([
      ['name', item.name],
      ['url', item.url],
      ['current', item.current ? 'yes' : 'no'],
    ]),
  )
  return 0
}

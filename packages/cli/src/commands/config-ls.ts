/** `config ls`: profiles, without their keys. */
import { COMMON_OPTIONS, formatOf, noMoreThan, parseArguments } from '../arguments.ts'
import type { Command } from '../command.ts'
import type { Io } from '../io.ts'
import { printList } from '../print.ts'
import { configPath, readConfig } from '../profiles/config-file.ts'

export const command: Command = {
  usage: 'config ls',
  help: 'Lists profiles: names for servers and the keys that belong to them. Keys are not shown. * is the one that counts when nothing else is said.',
  run,
}

async function run(io: Io, argv: readonly string[]): Promise<number> {
  const { values, operands } = parseArguments(argv, COMMON_OPTIONS)
  noMoreThan(operands, 0)
  const { current, profiles } = readConfig(io.environment)
  const rows = Object.entries(profiles).map(([name, { url }]) => ({ name, url, current: name === current }))
  const format = formatOf(values)
  if (rows.length === 0 && format === 'human') {
    await io.stdout.write(`no profiles in ${configPath(io.environment)}; make one with: sandglass config set PROFILE --url URL --api-key-file FILE\n`)
    return 0
  }
  await printList(io, format, rows, [
    { title: '', value: (row) => (row.current ? '*' : '') },
    { title: 'NAME', value: (row) => row.name },
    { title: 'URL', value: (row) => row.url },
  ])
  return 0
}

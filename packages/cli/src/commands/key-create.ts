/** `key create`: an API key, whose secret is shown once. */
import type { CreatedApiKey } from '@sandglass/sdk'
import { formatOf, noMoreThan, oneOfWords, operand, parseArguments, positiveInteger, SERVER_OPTIONS } from '../arguments.ts'
import type { Command } from '../command.ts'
import { connect } from '../connection.ts'
import type { Io } from '../io.ts'
import { printObject } from '../print.ts'

const OPTIONS = { ...SERVER_OPTIONS, role: { type: 'string' }, ttl: { type: 'string' }, tenant: { type: 'string' } } as const

export const command: Command = {
  usage: 'key create NAME [--role R] [--ttl S] [--tenant T]',
  help: `Creates an API key and prints its secret, once: it is stored nowhere. Redirect it into a file that only you may read.

  --role R     viewer, member (default) or owner; operator for operators
  --ttl S      seconds until it expires. Default never
  --tenant T   operators only: for this tenant, made when it does not exist`,
  run,
}

async function run(io: Io, argv: readonly string[]): Promise<number> {
  const { values, operands } = parseArguments(argv, OPTIONS)
  const name = operand(operands, 0, 'NAME')
  noMoreThan(operands, 1)
  const created = await connect(values).apiKeys.create({
    name,
    role: oneOfWords('--role', values.role, ['viewer', 'member', 'owner', 'operator']),
    expiresInSeconds: positiveInteger('--ttl', values.ttl),
    tenant: values.tenant,
  })
  await printObject<CreatedApiKey>(io, formatOf(values), created, (item) => `${item.key}\n`)
  return 0
}

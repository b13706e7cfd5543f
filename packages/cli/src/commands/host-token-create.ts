/** `host token create`: a token with which one machine joins, shown once. */
import type { CreatedJoinToken } from '@sandglass/sdk'
import { duration, formatOf, noMoreThan, oneOfWords, parseArguments, SERVER_OPTIONS } from '../arguments.ts'
import type { Command } from '../command.ts'
import { connect } from '../connection.ts'
import type { Io } from '../io.ts'
import { printObject } from '../print.ts'
import { UsageError } from '../usage-error.ts'

const OPTIONS = { ...SERVER_OPTIONS, ttl: { type: 'string' }, label: { type: 'string', multiple: true }, role: { type: 'string' } } as const

export const command: Command = {
  usage: 'host token create [--ttl TIME] [--label K=V]… [--role host|gateway]',
  help: `Makes a token with which one machine joins, once, and prints what to type there. The token is stored nowhere: what is printed is a secret.

  --ttl TIME    until it is over: 90s, 30m, 1h (default), 7d at most
  --label K=V   the host has this label from the start; may be repeated
  --role        of the machine; a gateway is given its token by SANDGLASS_JOIN_TOKEN_FILE

The machine must reach the control plane's listener for machines: SANDGLASS_INTERNAL_HOST and SANDGLASS_INTERNAL_PORT of up.`,
  run,
}

async function run(io: Io, argv: readonly string[]): Promise<number> {
  const { values, operands } = parseArguments(argv, OPTIONS)
  noMoreThan(operands, 0)
  const created = await connect(values).joinTokens.create({
    role: oneOfWords('--role', values.role, ['host', 'gateway']),
    ttlSeconds: duration('--ttl', values.ttl),
    labels: labelsOf(values.label),
  })
  await printObject<CreatedJoinToken>(io, formatOf(values), created, describe)
  return 0
}

const describe = (item: CreatedJoinToken): string =>
  item.role === 'host' ? `sandglass host join ${item.join_url} --token ${item.token}\n` : `SANDGLASS_CONTROL_URL=${item.join_url}\n${item.token}\n`

function labelsOf(texts: readonly string[] | undefined): Record<string, string> | undefined {
  if (texts === undefined) return undefined
  return Object.fromEntries(
    texts.map((text) => {
      const equals = text.indexOf('=')
      if (equals < 1 || equals === text.length - 1) throw new UsageError(`--label takes KEY=VALUE, not '${text}'`)
      return [text.slice(0, equals), text.slice(equals + 1)]
    }),
  )
}

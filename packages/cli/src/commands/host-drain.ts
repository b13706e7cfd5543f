/** `host drain`: empties a host before a deadline. */
import { setTimeout as delay } from 'node:timers/promises'
import { LIMITS } from '@sandglass/contract/limits'
import type { Host, Sandglass } from '@sandglass/sdk'
import { formatOf, noMoreThan, operand, parseArguments, positiveInteger, SERVER_OPTIONS } from '../arguments.ts'
import type { Command } from '../command.ts'
import { connect } from '../connection.ts'
import { EXIT } from '../exit-code.ts'
import { statusOf, waitsOf } from '../host-description.ts'
import { Interrupt, Interrupted } from '../interrupt.ts'
import type { Io } from '../io.ts'
import { printObject } from '../print.ts'

const OPTIONS = { ...SERVER_OPTIONS, deadline: { type: 'string' }, 'no-wait': { type: 'boolean' } } as const

export const command: Command = {
  usage: 'host drain HOST [--deadline S] [--no-wait]',
  help: `Cordons a host, and moves or ends what is on it before the deadline: starts that are not up yet begin again elsewhere, what runs may finish until
${LIMITS.drainEndSeconds} seconds before the deadline and is ended then. Waits until nothing is left and says on standard error what it waits for; ends with 125 when
the deadline has passed and something is left. Ctrl-C ends the waiting, not the drain: host uncordon calls that off.

  --deadline S   seconds from now, ${LIMITS.drainSecondsMin} or more. Default ${LIMITS.drainSecondsDefault}. A drain that is under way keeps its deadline without it, and never gets more time
  --no-wait      do not wait`,
  run,
}

const LOOK_EVERY_MS = 1_000

async function run(io: Io, argv: readonly string[]): Promise<number> {
  const { values, operands } = parseArguments(argv, OPTIONS)
  const named = operand(operands, 0, 'HOST')
  noMoreThan(operands, 1)
  const client = connect(values)
  const begun = await client.hosts.drain(named, { deadlineSeconds: positiveInteger('--deadline', values.deadline) })
  using interrupt = new Interrupt(io)
  try {
    const host = values['no-wait'] === true ? begun : await drained(io, client, begun, interrupt.signal)
    await printObject(io, formatOf(values), host, (item) => `${item.name} is ${statusOf(item)}\n`)
    return values['no-wait'] === true || host.drain?.state === 'drained' ? 0 : EXIT.refused
  } catch (error) {
    if (!interrupt.signal.aborted || !(interrupt.signal.reason instanceof Interrupted)) throw error
    await io.stderr.write(`sandglass: the drain of ${begun.name} goes on; \`sandglass host uncordon ${begun.name}\` calls it off\n`)
    return interrupt.signal.reason.exitCode
  }
}

/** @returns the host when its drain is over, overdue, or called off */
async function drained(io: Io, client: Sandglass, begun: Host, signal: AbortSignal): Promise<Host> {
  let host = begun
  let said = ''
  for (;;) {
    const { drain } = host
    const waits = drain === null ? 'the drain was called off' : waitsOf(drain).join('\n')
    if (waits !== said && waits !== '') await io.stderr.write(`${waits}\n`)
    said = waits
    if (drain?.state !== 'draining') return host
    await delay(LOOK_EVERY_MS, undefined, { signal })
    host = await client.hosts.get(begun.id, { signal })
  }
}

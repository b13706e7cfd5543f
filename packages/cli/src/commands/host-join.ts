/** `host join`: makes this machine a host of an installation elsewhere. */
import { readFileSync } from 'node:fs'
import { text } from 'node:stream/consumers'
import { HOST_UNIT, joinHost, runInFront, startDetached, writeUnit } from '@sandglass/supervisor'
import { COMMON_OPTIONS, formatOf, noMoreThan, operand, parseArguments } from '../arguments.ts'
import type { Command } from '../command.ts'
import type { Io } from '../io.ts'
import { printObject } from '../print.ts'
import { UsageError } from '../usage-error.ts'

const OPTIONS = {
  ...COMMON_OPTIONS,
  token: { type: 'string' },
  'token-file': { type: 'string' },
  address: { type: 'string' },
  detach: { type: 'boolean', short: 'd' },
  systemd: { type: 'boolean' },
} as const

export const command: Command = {
  usage: 'host join URL [--token TOKEN] [--token-file FILE] [--address ADDRESS] [--detach] [--systemd]',
  help: `Joins an installation elsewhere with the token that \`sandglass host token create\` printed there, then runs the host agent. This machine makes its own
key, which never leaves it, and trusts only the control plane that the token is from. Needs root. State lives in SANDGLASS_HOME.

  --token TOKEN       others on this machine can see arguments: prefer one of the next
  --token-file FILE   holds the token; - is standard input. SANDGLASS_JOIN_TOKEN works too
  --address ADDRESS   where gateways reach this machine. Default: its address towards the control plane
  --detach, -d        come back once it has joined, and leave the host agent running
  --systemd           write ${HOST_UNIT} and come back; nothing is started

A machine that has joined needs no token to run again. SANDGLASS_HOST_NAME, SANDGLASS_CAPACITY_VCPU, SANDGLASS_CAPACITY_MEMORY_MB, SANDGLASS_CAPACITY_DISK_GB and
SANDGLASS_DATA_PLANE_PORT are kept from this command on.`,
  run,
}

const UNIT_FOLDER = '/etc/systemd/system'

async function run(io: Io, argv: readonly string[]): Promise<number> {
  const { values, operands } = parseArguments(argv, OPTIONS)
  const url = operand(operands, 0, 'URL')
  noMoreThan(operands, 1)
  if (values.detach === true && values.systemd === true) throw new UsageError('--detach starts it and --systemd does not: give one of them')
  const host = await joinHost({ env: process.env, url, token: await tokenOf(io, values), address: values.address })
  const format = formatOf(values)
  const told = { host_id: host.hostId, home: host.home }
  if (values.systemd === true) {
    const unit = writeUnit(host, UNIT_FOLDER)
    await printObject(io, format, { ...told, unit }, (item) => `${item.host_id}\nsystemctl daemon-reload && systemctl enable --now ${HOST_UNIT}\n`)
    return 0
  }
  if (values.detach === true) {
    const pid = startDetached(host) ?? null
    await printObject(io, format, { ...told, pid }, (item) => `${item.host_id}\n`)
    return 0
  }
  await printObject(io, format, told, (item) => `${item.host_id}\n`)
  return await runInFront(host, (listener) => io.onSignal(listener))
}

async function tokenOf(io: Io, values: { readonly token?: string | undefined; readonly 'token-file'?: string | undefined }): Promise<string | undefined> {
  const file = values['token-file']
  if (values.token !== undefined && file !== undefined) throw new UsageError('give --token or --token-file')
  if (file === '-') return (await text(io.stdin)).trim()
  if (file !== undefined) return readFileSync(file, 'utf8').trim()
  return values.token ?? io.environment['SANDGLASS_JOIN_TOKEN']
}

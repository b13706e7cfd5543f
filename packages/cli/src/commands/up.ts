/** `up`: starts the installation on this machine. */
import { readFileSync } from 'node:fs'
import { Sandglass } from '@sandglass/sdk'
import { type InstallationStatus, readStatus, startInstallation, stopInstallation } from '@sandglass/supervisor'
import { COMMON_OPTIONS, formatOf, noMoreThan, parseArguments, positiveInteger } from '../arguments.ts'
import type { Command } from '../command.ts'
import { provedIsolation } from '../host-summary.ts'
import type { Io } from '../io.ts'
import { printObject } from '../print.ts'
import { renderFields } from '../table.ts'

const OPTIONS = {
  ...COMMON_OPTIONS,
  detach: { type: 'boolean', short: 'd' },
  'api-port': { type: 'string' },
  'gateway-port': { type: 'string' },
  host: { type: 'string' },
} as const

export const command: Command = {
  usage: 'up [--detach] [--api-port N] [--gateway-port N]',
  help: `Starts control plane, gateway, host agent and Postgres under supervision, waits until they are ready, and writes the profile that
other commands use. State lives in SANDGLASS_HOME (/var/lib/sandglass). Needs root. Twice is fine.

  --detach, -d       come back when it is ready; without it Ctrl-C stops it again (sandboxes stay, see down)
  --api-port N       default SANDGLASS_API_PORT, the last one used, 7070
  --gateway-port N   default SANDGLASS_GATEWAY_PORT, the last one used, 7071
  --host ADDRESS     address to listen on, default 127.0.0.1

Health and metrics of the host agent answer on loopback, at a port chosen at each start or at SANDGLASS_HOST_HEALTH_PORT; status shows it.`,
  run,
}

const LOOK_MS = 1_000
const HOSTS_TIMEOUT_MS = 5_000

async function run(io: Io, argv: readonly string[]): Promise<number> {
  const { values, operands } = parseArguments(argv, OPTIONS)
  noMoreThan(operands, 0)
  const format = formatOf(values)
  const { alreadyRunning, status } = await startInstallation({
    env: process.env,
    apiPort: positiveInteger('--api-port', values['api-port']),
    gatewayPort: positiveInteger('--gateway-port', values['gateway-port']),
    host: values.host,
  })
  const isolation = format === 'human' ? await isolationOf(status) : undefined
  await printObject<InstallationStatus>(io, format, status, (item) => describe(item, alreadyRunning, isolation))
  if (values.detach === true || alreadyRunning) return 0
  return stayInFront(io, status.home)
}

async function isolationOf(status: InstallationStatus): Promise<string | undefined> {
  if (status.api_url === null || status.admin_key_file === null) return undefined
  try {
    const client = new Sandglass({ url: status.api_url, apiKey: readFileSync(status.admin_key_file, 'utf8').trim() })
    const found: string[] = []
    for await (const host of client.hosts.list({ timeoutMs: HOSTS_TIMEOUT_MS })) found.push(...provedIsolation(host))
    return found.join('; ')
  } catch {
    // It has just started and says so elsewhere; this line is only a courtesy.
    return undefined
  }
}

function describe(status: InstallationStatus, alreadyRunning: boolean, isolation: string | undefined): string {
  const roles = status.roles.map((role) => `${role.name} ${role.state}`).join('   ')
  const fields: [string, string][] = [
    ['API', status.api_url ?? '-'],
    ['API reference', `${status.api_url ?? ''}/openapi.json`],
    ['Gateway', status.gateway_url ?? '-'],
    ['Admin key', status.admin_key_file ?? '-'],
    ['State', status.home],
    ['Isolation', isolation === undefined || isolation === '' ? 'not proved yet: sandglass doctor' : isolation],
  ]
  return `  ${alreadyRunning ? 'already running: ' : ''}${roles}\n\n${renderFields(fields, '  ')}\n  Try:  ./sandglass run -- python3 -c 'print(6*7)'\n`
}

/** Until Ctrl-C, which stops it, or until it is stopped from elsewhere. */
async function stayInFront(io: Io, home: string): Promise<number> {
  const stopped = await new Promise<boolean>((resolve) => {
    const look = setInterval(() => {
      if (readStatus(home).supervisor_pid !== null) return
      finish(false)
    }, LOOK_MS)
    const stopListening = io.onSignal(() => finish(true))
    const finish = (bySignal: boolean) => {
      clearInterval(look)
      stopListening()
      resolve(bySignal)
    }
  })
  if (!stopped) return 0
  await io.stderr.write('stopping; sandboxes stay (sandglass down --sandboxes ends them)\n')
  await stopInstallation({ env: process.env, sandboxes: false })
  return 0
}

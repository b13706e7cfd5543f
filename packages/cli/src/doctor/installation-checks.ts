/** Checks of the installation in SANDGLASS_HOME: files, ports, roles, hosts. */

import { ProfileSchema } from '@sandglass/contract/profile'
import { HostListSchema } from '@sandglass/contract/public-api'
import { parserOf } from '@sandglass/contract/schema'
import { type Check, type Finding, fail, ok, warn } from './check.ts'
import type { Machine } from './machine.ts'

const OTHERS = 0o077
const SECRET_FILES = ['admin.key', 'tenant.key', 'profile.json']
const profileParser = parserOf(ProfileSchema)
const hostList = parserOf(HostListSchema)

async function profileOf(machine: Machine): Promise<{ url: string; api_key: string } | undefined> {
  try {
    const value: unknown = JSON.parse((await machine.read(`${machine.home}/profile.json`)) ?? '')
    return profileParser.check(value) ? value : undefined
  } catch {
    return undefined
  }
}

const keyFiles: Check = {
  name: 'key files',
  async run(machine) {
    const found: string[] = []
    for (const name of SECRET_FILES) {
      const path = `${machine.home}/${name}`
      const file = await machine.file(path)
      if (file === undefined) continue
      found.push(name)
      if ((file.mode & OTHERS) !== 0)
        return fail(`${path} has mode ${file.mode.toString(8)}`, 'Other users of this machine can read a key.', `chmod 600 ${path}`)
    }
    return found.length === 0
      ? warn(`none in ${machine.home}`, 'There is no installation here yet.', './sandglass up --detach')
      : ok(`${found.join(', ')}: only their owner`)
  },
}

type Listener = { readonly name: string; readonly role: string; readonly variable: string; readonly port: (machine: Machine) => number }

/** Either the installation's own process listens there, or nobody. */
function port({ name, role, variable, port: number }: Listener): Check {
  return {
    name: `${name} port`,
    async run(machine) {
      const value = number(machine)
      if (value === 0) return ok(`a free one at each start; ${variable} gives one that stays`)
      const url = `http://127.0.0.1:${value}`
      if (!(await machine.listens(value))) return ok(`${value} is free`)
      const answer = await machine.get(`${url}/healthz`)
      if (answer?.status === 200) return ok(`${value} answers`)
      return fail(`${value} is taken by something else`, `The ${role} cannot listen there.`, `ss -ltnp 'sport = :${value}', or choose another: ${variable}`)
    },
  }
}

const PORTS: readonly Listener[] = [
  { name: 'api', role: 'API', variable: 'SANDGLASS_API_PORT', port: (machine) => machine.apiPort },
  { name: 'gateway', role: 'gateway', variable: 'SANDGLASS_GATEWAY_PORT', port: (machine) => machine.gatewayPort },
  { name: 'host health', role: 'host agent', variable: 'SANDGLASS_HOST_HEALTH_PORT', port: (machine) => machine.hostHealthPort },
]

/** What the profile names may be another machine, or another port than the default. */
const api: Check = {
  name: 'API',
  async run(machine): Promise<Finding> {
    const profile = await profileOf(machine)
    if (profile === undefined) return warn('no profile', 'The command line knows no installation.', './sandglass up --detach')
    const ready = await machine.get(`${profile.url}/readyz`)
    if (ready === undefined) return warn(`${profile.url} does not answer`, 'The installation is not running.', './sandglass up --detach')
    if (ready.status !== 200)
      return fail(`${profile.url}/readyz says ${ready.status}`, 'The control plane runs but cannot serve.', './sandglass logs control-plane')
    const templates = await machine.get(`${profile.url}/v1/templates`, profile.api_key)
    if (templates?.status === 401)
      return fail('the key of the profile is refused', 'The command line cannot do anything.', './sandglass down && ./sandglass up --detach')
    return templates?.status === 200
      ? ok(`${profile.url} is ready`)
      : fail(`${profile.url}/v1/templates says ${templates?.status ?? 'nothing'}`, 'The API does not work.', './sandglass logs control-plane')
  },
}

const gateway: Check = {
  name: 'gateway',
  async run(machine) {
    if ((await profileOf(machine)) === undefined) return warn('no profile', 'There is no installation here yet.', './sandglass up --detach')
    const url = `http://127.0.0.1:${machine.gatewayPort}`
    const ready = await machine.get(`${url}/readyz`)
    if (ready === undefined) return warn(`${url} does not answer`, 'Commands and files in sandboxes cannot be reached.', './sandglass up --detach')
    return ready.status === 200
      ? ok(`${url} is ready`)
      : fail(`${url}/readyz says ${ready.status}`, 'Commands and files in sandboxes cannot be reached.', './sandglass logs gateway')
  },
}

const hosts: Check = {
  name: 'hosts',
  async run(machine) {
    const profile = await profileOf(machine)
    const answer = profile === undefined ? undefined : await machine.get(`${profile.url}/v1/hosts`, profile.api_key)
    if (answer === undefined) return warn('unknown', 'The API does not answer.', './sandglass up --detach')
    if (answer.status === 403) return ok('only operators see them')
    const value: unknown = answer.status === 200 ? JSON.parse(answer.body) : undefined
    if (!hostList.check(value)) return fail(`/v1/hosts says ${answer.status}`, 'Whether sandboxes can run is unknown.', './sandglass logs control-plane')
    const lost = value.items.filter((host) => host.status === 'lost')
    if (value.items.length === lost.length) return fail(`${value.items.length} known, none ready`, 'No sandbox can start.', './sandglass logs host-agent')
    const unproved = value.items.flatMap((host) =>
      host.drivers.filter((driver) => !driver.proved).map((driver) => `${host.name}: ${driver.name}: ${driver.detail}`),
    )
    const proved = value.items.flatMap((host) =>
      host.drivers.filter((driver) => driver.proved).map((driver) => `${driver.name} ${driver.version} on ${host.name}`),
    )
    if (proved.length === 0) return fail(unproved.join('; ') || 'no driver', 'No isolation was proved, so no sandbox can start.', './sandglass logs host-agent')
    const saw = `${value.items.length - lost.length} ready; proved: ${[...new Set(proved)].join(', ')}`
    return lost.length === 0 ? ok(saw) : warn(`${saw}; ${lost.length} lost`, 'Sandboxes there cannot be reached.', './sandglass logs host-agent')
  },
}

export const INSTALLATION_CHECKS: readonly Check[] = [keyFiles, ...PORTS.map(port), api, gateway, hosts]

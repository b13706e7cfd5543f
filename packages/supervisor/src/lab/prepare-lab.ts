/** What must be there before the first node of a lab starts. Done again it changes nothing. */
import { createHash, randomBytes } from 'node:crypto'
import { chmodSync, chownSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { CodedError } from '@sandglass/contract/errors'
import { type Owner, writeFileAtomic } from '../atomic-file.ts'
import { type CodeView, openCodeView } from '../code-view.ts'
import { compileAhead } from '../compiled-code.ts'
import { paths } from '../installation.ts'
import { LogFile } from '../log-file.ts'
import { ensureDatabase, type PostgresPlace } from '../postgres.ts'
import { privilegedCommand, requireReach } from '../privileges.ts'
import { type RoleName, roleEnvironment } from '../role-environment.ts'
import { type Machine, writeSecrets } from '../secrets.ts'
import { ensureUser, SYSTEM_USERS, type SystemUser } from '../system-user.ts'
import { mountDisk } from './disk.ts'
import type { LabState } from './lab-state.ts'
import { installationOfNode } from './node-environment.ts'
import { labPaths } from './paths.ts'
import { type LabNode, type LabPlan, PORTS } from './plan.ts'

const ROOT: Owner = { uid: 0, gid: 0 }
const PASSWORD_BYTES = 24

/** As in an installation: only the host agent is root. */
export const NODE_USERS: Readonly<Record<RoleName, SystemUser | undefined>> = {
  postgres: SYSTEM_USERS.database,
  'control-plane': SYSTEM_USERS.api,
  gateway: SYSTEM_USERS.gateway,
  'host-agent': undefined,
}

export type LabWorld = LabState & { readonly view: CodeView; readonly postgres: PostgresPlace }

const sha256 = (bytes: string | Uint8Array): string => createHash('sha256').update(bytes).digest('hex')

/** The fake driver mounts no template; one of this name and some bytes is what the control plane has to know and a host to offer. */
function writeFakeTemplate(home: string): void {
  const folder = labPaths.templates(home)
  mkdirSync(folder, { recursive: true, mode: 0o755 })
  const bytes = 'a template for runtimes that isolate nothing\n'
  const digest = sha256(bytes)
  const file = `base-${digest.slice(0, 12)}.erofs`
  if (existsSync(join(folder, file))) return
  writeFileSync(join(folder, file), bytes, { mode: 0o644 })
  const manifest = { name: 'base', digest: `sha256:${digest}`, file, size_bytes: bytes.length, packages: [], created_at: new Date().toISOString() }
  writeFileSync(join(folder, 'base.json'), JSON.stringify(manifest), { mode: 0o644 })
}

function databasePassword(plan: LabPlan, database: LabNode, api: Owner): string {
  const place = labPaths.databasePassword(plan.home)
  if (!existsSync(place)) writeFileAtomic(place, randomBytes(PASSWORD_BYTES).toString('hex'), 0o600)
  const password = readFileSync(place, 'utf8')
  writeFileAtomic(labPaths.databasePassfile(plan.home), `${database.address}:${PORTS.postgres}:sandglass:sandglass:${password}\n`, 0o600, api)
  return password
}

export async function prepareLab(state: LabState): Promise<LabWorld> {
  const { plan, environment } = state
  const { home } = plan
  for (const folder of [home, paths.secrets(home), join(home, 'nodes')]) {
    mkdirSync(folder, { recursive: true })
    chmodSync(folder, 0o711)
  }
  mkdirSync(paths.run(home), { recursive: true, mode: 0o755 })
  mkdirSync(paths.logs(home), { recursive: true, mode: 0o700 })
  const owner = await ensureUser(SYSTEM_USERS.database)
  const api = await ensureUser(SYSTEM_USERS.api)
  const gateway = await ensureUser(SYSTEM_USERS.gateway)
  requireReach(SYSTEM_USERS.database, paths.run(home))

  const database = plan.nodes.find((node) => node.kind === 'postgres')
  const controlPlanes = plan.nodes.filter((node) => node.kind === 'control-plane')
  const [first] = controlPlanes
  if (database === undefined || first === undefined) throw new CodedError('internal', 'The lab has no database or no control plane.')
  const installation = installationOfNode(plan, first)
  const machines = plan.nodes.flatMap(({ name, kind }): Machine[] =>
    kind === 'host-agent' ? [{ name, role: 'host' }] : kind === 'gateway' ? [{ name, role: 'gateway' }] : [],
  )
  writeSecrets(installation, { root: ROOT, api, gateway }, machines)
  const password = databasePassword(plan, database, api)
  const view = openCodeView(SYSTEM_USERS.api, plan.code, process.execPath, paths.codeView(home))
  const postgres: PostgresPlace = {
    home,
    owner,
    code: plan.code,
    view,
    env: roleEnvironment('postgres', installation, environment),
    network: { address: database.address, clients: controlPlanes.map((node) => node.address), password },
  }
  const log = new LogFile(paths.log(home, database.name))
  try {
    await ensureDatabase(postgres, log)
  } finally {
    log.close()
  }
  if (plan.driver === 'fake') writeFakeTemplate(home)
  for (const node of plan.nodes) {
    mkdirSync(labPaths.node(home, node.name), { recursive: true, mode: 0o711 })
    if (node.kind === 'gateway') {
      const own = join(labPaths.node(home, node.name), 'identity')
      mkdirSync(own, { recursive: true, mode: 0o700 })
      chownSync(own, gateway.uid, gateway.gid)
    }
    if (node.kind === 'host-agent') mountDisk(home, node.name, plan.driver)
  }
  const owners: Readonly<Record<RoleName, Owner>> = { postgres: owner, 'control-plane': api, gateway, 'host-agent': ROOT }
  const roles: readonly RoleName[] = ['control-plane', 'gateway', 'host-agent']
  await Promise.all(
    roles.map((role) => {
      const main = join(view.root, 'packages', role, 'src', 'main.ts')
      return compileAhead(paths.compileCache(home, role), owners[role], privilegedCommand([view.node, main], { user: NODE_USERS[role], deathSignal: 'KILL' }))
    }),
  )
  return { ...state, view, postgres }
}

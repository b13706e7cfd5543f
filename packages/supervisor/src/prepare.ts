/** What must be there before the first role starts: users, directories with their owners, secrets, the database. Done again it changes nothing. */
import { chmodSync, chownSync, mkdirSync } from 'node:fs'
import { openCodeView } from './code-view.ts'
import { type Installation, paths } from './installation.ts'
import { LogFile } from './log-file.ts'
import { ensureDatabase, type PostgresPlace } from './postgres.ts'
import { requireReach } from './privileges.ts'
import { roleEnvironment } from './role-environment.ts'
import type { RolesPlace } from './roles.ts'
import { writeSecrets } from './secrets.ts'
import { ensureUser, SYSTEM_USERS } from './system-user.ts'

const ROOT = { uid: 0, gid: 0 }

export async function prepare(installation: Installation, outer: NodeJS.ProcessEnv): Promise<RolesPlace> {
  const { home } = installation
  // Roles pass through the home to their own files; they cannot list it.
  for (const folder of [home, paths.run(home), paths.secrets(home)]) {
    mkdirSync(folder, { recursive: true })
    chmodSync(folder, folder === paths.run(home) ? 0o755 : 0o711)
  }
  for (const folder of [paths.logs(home), paths.hostState(home)]) {
    mkdirSync(folder, { recursive: true })
    chmodSync(folder, 0o700)
  }
  const database = await ensureUser(SYSTEM_USERS.database)
  const api = await ensureUser(SYSTEM_USERS.api)
  const gateway = await ensureUser(SYSTEM_USERS.gateway)
  const gatewayState = paths.gatewayState(home)
  mkdirSync(gatewayState, { recursive: true })
  chmodSync(gatewayState, 0o700)
  chownSync(gatewayState, gateway.uid, gateway.gid)
  requireReach(SYSTEM_USERS.database, paths.run(home))
  const owners = { root: ROOT, api, gateway }
  writeSecrets(installation, owners)
  const view = openCodeView(SYSTEM_USERS.api, installation.code, process.execPath, paths.codeView(home))
  const postgres: PostgresPlace = { home, owner: database, code: installation.code, view, env: roleEnvironment('postgres', installation, outer) }
  const log = new LogFile(paths.log(home, 'postgres'))
  try {
    await ensureDatabase(postgres, log)
  } finally {
    log.close()
  }
  return { installation, view, postgres, owners, outer }
}

/**
 * The installation's secrets. Each is made once, whole or not at all, readable by the one user that needs it; what follows from a secret
 * (its digest, the profile) is written anew at each start, so that nothing can disagree after a crash in between.
 */
import { createHash, generateKeyPairSync, randomBytes } from 'node:crypto'
import { chmodSync, chownSync, existsSync, mkdirSync, readFileSync } from 'node:fs'
import { type Owner, writeFileAtomic } from './atomic-file.ts'
import { type Installation, paths } from './installation.ts'

const PRIVATE = 0o600
const TOKEN_BYTES = 32

export type SecretOwners = { readonly root: Owner; readonly api: Owner; readonly gateway: Owner }

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex')
const token = (): string => randomBytes(TOKEN_BYTES).toString('base64url')
const apiKey = (): string => `sgk_${token()}`
const signingKey = (): string => generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()

function keep(path: string, owner: Owner, make: () => string): string {
  if (!existsSync(path)) writeFileAtomic(path, make(), PRIVATE, owner)
  chownSync(path, owner.uid, owner.gid)
  chmodSync(path, PRIVATE)
  return readFileSync(path, 'utf8')
}

export function writeSecrets(installation: Installation, owners: SecretOwners): void {
  const { home } = installation
  mkdirSync(paths.secrets(home), { recursive: true })
  chmodSync(paths.secrets(home), 0o711)
  const derive = (name: string, text: string, owner: Owner) => writeFileAtomic(paths.secret(home, name), text, PRIVATE, owner)

  keep(paths.secret(home, 'ticket.key'), owners.api, signingKey)
  keep(paths.secret(home, 'ca.key'), owners.api, signingKey)
  const hostToken = keep(paths.secret(home, 'host.token'), owners.root, token)
  const gatewayToken = keep(paths.secret(home, 'gateway.token'), owners.gateway, token)
  derive('host.token.sha256', sha256(hostToken), owners.api)
  derive('gateway.token.sha256', sha256(gatewayToken), owners.api)

  const admin = keep(paths.adminKey(home), owners.root, apiKey)
  const tenant = keep(paths.tenantKey(home), owners.root, apiKey)
  const bootstrap = [
    { name: 'admin', role: 'operator', sha256: sha256(admin) },
    { name: 'tenant', role: 'member', sha256: sha256(tenant) },
  ]
  derive('bootstrap-keys.json', `${JSON.stringify(bootstrap)}\n`, owners.api)
  writeFileAtomic(paths.profile(home), `${JSON.stringify({ url: installation.apiUrl, api_key: admin })}\n`, PRIVATE, owners.root)
}

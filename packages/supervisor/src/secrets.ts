/**
 * The installation's secrets. Each is made once, whole or not at all, readable by the one user that needs it; what follows from a secret
 * (its digest, the profile) is written anew at each start, so that nothing can disagree after a crash in between. The gateway and the host of this machine
 * join as others do: each start hands them a token of their own, for when they have no certificate that is still good.
 */
import { createHash, createPublicKey, generateKeyPairSync, randomBytes } from 'node:crypto'
import { chmodSync, chownSync, existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs'
import { type Owner, writeFileAtomic } from './atomic-file.ts'
import { type Installation, paths } from './installation.ts'

const PRIVATE = 0o600
const TOKEN_BYTES = 32

export type SecretOwners = { readonly root: Owner; readonly api: Owner; readonly gateway: Owner }

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex')
const token = (): string => randomBytes(TOKEN_BYTES).toString('base64url')
/** Of a join token, see @sandglass/contract/join-token: behind the dot the fingerprint of the CA's public key. */
const joinToken = (caKey: string): string => {
  const spki = createPublicKey(caKey).export({ type: 'spki', format: 'der' })
  return `sgj_${token()}.${createHash('sha256').update(spki).digest('base64url')}`
}
const apiKey = (): string => `sgk_${token()}`
const signingKey = (): string => generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()

function keep(path: string, owner: Owner, make: () => string): string {
  if (!existsSync(path)) writeFileAtomic(path, make(), PRIVATE, owner)
  chownSync(path, owner.uid, owner.gid)
  chmodSync(path, PRIVATE)
  return readFileSync(path, 'utf8')
}

/** One that is to join; its token is in `NAME.join`. */
export type Machine = { readonly name: string; readonly role: 'host' | 'gateway' }

const OF_ONE_MACHINE: readonly Machine[] = [
  { name: 'host', role: 'host' },
  { name: 'gateway', role: 'gateway' },
]

export function writeSecrets(installation: Installation, owners: SecretOwners, machines = OF_ONE_MACHINE): void {
  const { home } = installation
  mkdirSync(paths.secrets(home), { recursive: true })
  chmodSync(paths.secrets(home), 0o711)
  const derive = (name: string, text: string, owner: Owner) => writeFileAtomic(paths.secret(home, name), text, PRIVATE, owner)

  keep(paths.secret(home, 'ticket.key'), owners.api, signingKey)
  const caKey = keep(paths.secret(home, 'ca.key'), owners.api, signingKey)
  const joining = machines.map(({ name, role }) => {
    const text = joinToken(caKey)
    derive(`${name}.join`, text, role === 'host' ? owners.root : owners.gateway)
    return { role, sha256: sha256(text) }
  })
  derive('join-tokens.json', `${JSON.stringify(joining)}\n`, owners.api)
  // Of installations whose roles had no certificates yet.
  for (const name of ['host.token', 'host.token.sha256', 'gateway.token', 'gateway.token.sha256']) rmSync(paths.secret(home, name), { force: true })

  const admin = keep(paths.adminKey(home), owners.root, apiKey)
  const tenant = keep(paths.tenantKey(home), owners.root, apiKey)
  const bootstrap = [
    { name: 'admin', role: 'operator', sha256: sha256(admin) },
    { name: 'tenant', role: 'member', sha256: sha256(tenant) },
  ]
  derive('bootstrap-keys.json', `${JSON.stringify(bootstrap)}\n`, owners.api)
  writeFileAtomic(paths.profile(home), `${JSON.stringify({ url: installation.apiUrl, api_key: admin })}\n`, PRIVATE, owners.root)
}

/** The certificate that this control plane shows: its own key, made at each start and kept in memory, and issued by the CA whose key it holds. */
import { generateKeyPairSync } from 'node:crypto'
import type { KeyAndCertificate } from '@sandglass/identity'
import { type Authority, lifetimeFrom } from '@sandglass/identity/authority'

type Own = { readonly region: string; readonly name: string }

/** @returns issues one for the same key, valid from now on */
export function ownCertificate(authority: Authority, { region, name }: Own): (wallMs: number) => KeyAndCertificate {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519')
  const key = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
  return (wallMs) => {
    const { pem } = authority.issue({ region, role: 'control-plane', name, publicKey }, lifetimeFrom(wallMs))
    return { key, cert: `${pem}${authority.certificatePem}` }
  }
}

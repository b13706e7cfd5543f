/** A CA for tests, one for each process: whoever shows its certificates is let in by what trusts it. */
import { createPublicKey, generateKeyPairSync, type KeyObject } from 'node:crypto'
import type { TlsOptions } from 'node:tls'
import { type IdentityRole, type IssuedCertificate, LIMITS } from '@sandglass/contract'
import { OwnIdentity, serverOptions } from '@sandglass/identity'
import { Authority, lifetimeFrom } from '@sandglass/identity/authority'

export type Certified = {
  readonly role: IdentityRole
  readonly name: string
  /** Default: `l1`, as in configurations of tests. */
  readonly region?: string
  /** Default: a new one. */
  readonly key?: KeyObject
  /** When it is issued, Unix time in milliseconds. Default: now. */
  readonly atMs?: number
}

export class TestAuthority {
  readonly privateKey: KeyObject
  readonly authority: Authority

  constructor(privateKey = generateKeyPairSync('ed25519').privateKey) {
    this.privateKey = privateKey
    this.authority = new Authority(privateKey)
  }

  /** Private key and certificate, PEM, of any age. */
  pair({ role, name, region = 'l1', key = generateKeyPairSync('ed25519').privateKey, atMs = Date.now() }: Certified): {
    readonly key: string
    readonly cert: string
  } {
    const { pem } = this.authority.issue({ role, name, region, publicKey: createPublicKey(key) }, lifetimeFrom(atMs))
    return { key: key.export({ type: 'pkcs8', format: 'pem' }).toString(), cert: pem }
  }

  /** Options of a TLS server that shows such a certificate, and behind it the CA's. */
  server(certified: Certified): TlsOptions {
    const { key, cert } = this.pair(certified)
    return serverOptions({ key, cert: `${cert}${this.authority.certificatePem}` })
  }

  /** What a control plane answers to whoever joins or renews. */
  issued(role: IdentityRole, name: string, publicKey: KeyObject): IssuedCertificate {
    const { pem } = this.authority.issue({ region: 'l1', role, name, publicKey }, lifetimeFrom(Date.now()))
    return { certificate_pem: pem, ca_pem: [this.authority.certificatePem], renew_after_ms: LIMITS.certificateLifeMs / 2 }
  }

  /** One that a machine takes for one of this CA's. */
  get joinToken(): string {
    return `sgj_${'A'.repeat(43)}.${this.authority.fingerprint}`
  }

  /** An identity as a process holds it. */
  identity(certified: Certified): OwnIdentity {
    const { key, cert } = this.pair(certified)
    return new OwnIdentity(key, { certificatePem: cert, caPems: [this.authority.certificatePem] }, () => certified.atMs ?? Date.now())
  }
}

/** The one that tests share that do not care. */
export const TEST_AUTHORITY = new TestAuthority()

/** The identity of this process: its key, the certificate that it shows at present, and whom it trusts. A renewal replaces the certificate under way. */
import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto'
import { createSecureContext, type SecureContext } from 'node:tls'
import { CodedError } from '@sandglass/contract'
import type { IdentityRecord } from './identity-file.ts'
import { checkPeer, type Peer } from './peer.ts'
import { contextOptions, type KeyAndCertificate } from './tls-settings.ts'
import { keysOf, type Trust } from './trust.ts'

export type Issued = NonNullable<IdentityRecord['issued']>

export class OwnIdentity {
  #keyPem: string
  /** Unix time in milliseconds, as this machine has it. */
  readonly wallMs: () => number
  readonly #listeners = new Set<() => void>()
  #state: { readonly issued: Issued; readonly trust: Trust; readonly self: Peer; readonly context: SecureContext }

  /** @throws CodedError `certificate_refused` for a certificate that nobody would let in */
  constructor(keyPem: string, issued: Issued, wallMs: () => number) {
    this.#keyPem = keyPem
    this.wallMs = wallMs
    this.#state = this.#stateOf(issued)
  }

  get self(): Peer {
    return this.#state.self
  }

  get privateKey(): KeyObject {
    return createPrivateKey(this.#keyPem)
  }

  get trust(): Trust {
    return this.#state.trust
  }

  /** For servers. */
  get pair(): KeyAndCertificate {
    const { certificatePem, caPems } = this.#state.issued
    return { key: this.#keyPem, cert: [certificatePem, ...caPems].join('') }
  }

  /** For connections that are opened from now on. */
  get context(): SecureContext {
    return this.#state.context
  }

  get record(): IdentityRecord {
    return { keyPem: this.#keyPem, issued: this.#state.issued }
  }

  /** Looks at a certificate with the eyes of this process. @throws PeerRefused */
  check(certificate: X509Certificate | undefined): Peer {
    return checkPeer(certificate, this.#state.trust, this.wallMs())
  }

  /** @throws CodedError as the constructor; then nothing has changed */
  replace(issued: Issued): void {
    this.#state = this.#stateOf(issued)
    for (const listener of this.#listeners) listener()
  }

  /** Takes over another key and its certificate: this machine has joined anew. */
  become(other: OwnIdentity): void {
    this.#keyPem = other.#keyPem
    this.replace(other.#state.issued)
  }

  /** Called when connections that are kept should be opened anew. @returns removes the listener */
  onReplaced(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  #stateOf(issued: Issued) {
    const certificate = new X509Certificate(issued.certificatePem)
    const { region } = idOf(certificate)
    const trust: Trust = { region, keys: keysOf(issued.caPems) }
    const self = checkPeer(certificate, trust, this.wallMs())
    return { issued, trust, self, context: createSecureContext(contextOptions({ key: this.#keyPem, cert: issued.certificatePem })) }
  }
}

function idOf(certificate: X509Certificate): { readonly region: string } {
  const region = /^URI:spiffe:\/\/sandglass\/([a-z0-9]{2})\//.exec(certificate.subjectAltName ?? '')?.[1]
  if (region === undefined) throw new CodedError('certificate_refused', 'The certificate names no region.')
  return { region }
}

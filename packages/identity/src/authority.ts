/**
 * The control plane's own CA: one Ed25519 key, from which everything else follows. Its self-signed certificate has nothing in it that could differ (fixed
 * times and serial, and an Ed25519 signature of the same bytes is the same), so every replica that holds the key makes the same one and no file but the
 * key's has to be kept.
 *
 * node:crypto signs but builds no certificates. The structures of RFC 5280 are those of @peculiar/asn1-x509, which is kept up, small, and no more than that;
 * @peculiar/x509 above it wants a container for dependency injection and metadata by reflection, and node-forge knows no such keys.
 */
import { createHash, createPublicKey, type KeyObject, randomBytes, sign } from 'node:crypto'
import { AsnConvert, OctetString } from '@peculiar/asn1-schema'
import {
  AlgorithmIdentifier,
  AttributeTypeAndValue,
  AttributeValue,
  AuthorityKeyIdentifier,
  BasicConstraints,
  Certificate,
  ExtendedKeyUsage,
  Extension,
  Extensions,
  GeneralName,
  id_ce_authorityKeyIdentifier,
  id_ce_basicConstraints,
  id_ce_extKeyUsage,
  id_ce_keyUsage,
  id_ce_subjectAltName,
  id_ce_subjectKeyIdentifier,
  id_kp_clientAuth,
  id_kp_serverAuth,
  KeyIdentifier,
  KeyUsage,
  KeyUsageFlags,
  Name,
  RelativeDistinguishedName,
  SubjectAlternativeName,
  SubjectKeyIdentifier,
  SubjectPublicKeyInfo,
  TBSCertificate,
  Validity,
  Version,
} from '@peculiar/asn1-x509'
import { LIMITS, type SpiffeId, spiffeIdText } from '@sandglass/contract'
import { fingerprintOf } from './trust.ts'

const ED25519 = '1.3.101.112'
const COMMON_NAME = '2.5.4.3'
const SERIAL_BYTES = 16
/** RFC 5280, 4.1.2.5: of a certificate that has no well-defined end. */
const NO_END = new Date('9999-12-31T23:59:59Z')
const EVER_SINCE = new Date('2020-01-01T00:00:00Z')

export type Issued = { readonly pem: string; readonly serial: string; readonly notAfter: Date }

/** A machine's certificate, to be issued. */
export type Subject = SpiffeId & { readonly publicKey: KeyObject }

export type Lifetime = { readonly notBefore: Date; readonly notAfter: Date }

/** Back-dated, so that a clock that is behind the issuer's finds it valid already. */
export const lifetimeFrom = (nowMs: number): Lifetime => ({
  notBefore: new Date(nowMs - LIMITS.certificateToleranceMs),
  notAfter: new Date(nowMs + LIMITS.certificateLifeMs),
})

export class Authority {
  /** Self-signed, PEM. */
  readonly certificatePem: string
  /** SHA-256 of the public key, base64url: what join tokens carry. */
  readonly fingerprint: string
  readonly #privateKey: KeyObject
  readonly #name: Name
  readonly #keyId: ArrayBuffer

  /** @param privateKey Ed25519 */
  constructor(privateKey: KeyObject) {
    this.#privateKey = privateKey
    const publicKey = createPublicKey(privateKey)
    this.fingerprint = fingerprintOf(publicKey)
    this.#keyId = keyIdOf(publicKey)
    this.#name = nameOf(`Sandglass CA ${this.fingerprint.slice(0, 8)}`)
    const lifetime = { notBefore: EVER_SINCE, notAfter: NO_END }
    this.certificatePem = pemOf(
      this.#sign(this.#name, publicKey, new Uint8Array([1]), lifetime, [
        extension(id_ce_basicConstraints, new BasicConstraints({ cA: true, pathLenConstraint: 0 }), true),
        extension(id_ce_keyUsage, new KeyUsage(KeyUsageFlags.keyCertSign | KeyUsageFlags.cRLSign), true),
      ]),
    )
  }

  issue({ publicKey, ...id }: Subject, lifetime: Lifetime): Issued {
    const serial = randomBytes(SERIAL_BYTES)
    // Positive, and of always the same length.
    serial[0] = ((serial[0] ?? 0) & 0x3f) | 0x40
    const san = new SubjectAlternativeName([new GeneralName({ uniformResourceIdentifier: spiffeIdText(id) })])
    const der = this.#sign(nameOf(`${id.role} ${id.name}`), publicKey, serial, lifetime, [
      extension(id_ce_basicConstraints, new BasicConstraints({ cA: false }), true),
      extension(id_ce_keyUsage, new KeyUsage(KeyUsageFlags.digitalSignature), true),
      extension(id_ce_extKeyUsage, new ExtendedKeyUsage([id_kp_clientAuth, id_kp_serverAuth]), false),
      extension(id_ce_subjectAltName, san, false),
    ])
    return { pem: pemOf(der), serial: serial.toString('hex'), notAfter: lifetime.notAfter }
  }

  #sign(subject: Name, publicKey: KeyObject, serial: Uint8Array, { notBefore, notAfter }: Lifetime, extensions: Extension[]): Buffer {
    const algorithm = new AlgorithmIdentifier({ algorithm: ED25519 })
    const tbs = new TBSCertificate({
      version: Version.v3,
      serialNumber: Uint8Array.from(serial).buffer,
      signature: algorithm,
      issuer: this.#name,
      validity: new Validity({ notBefore, notAfter }),
      subject,
      subjectPublicKeyInfo: AsnConvert.parse(publicKey.export({ type: 'spki', format: 'der' }), SubjectPublicKeyInfo),
      extensions: new Extensions([
        ...extensions,
        extension(id_ce_subjectKeyIdentifier, new SubjectKeyIdentifier(keyIdOf(publicKey)), false),
        extension(id_ce_authorityKeyIdentifier, new AuthorityKeyIdentifier({ keyIdentifier: new KeyIdentifier(this.#keyId) }), false),
      ]),
    })
    const signatureValue = Uint8Array.from(sign(null, Buffer.from(AsnConvert.serialize(tbs)), this.#privateKey)).buffer
    return Buffer.from(AsnConvert.serialize(new Certificate({ tbsCertificate: tbs, signatureAlgorithm: algorithm, signatureValue })))
  }
}

/** RFC 7093, 2, method 1. */
const keyIdOf = (publicKey: KeyObject): ArrayBuffer =>
  Uint8Array.from(
    createHash('sha256')
      .update(publicKey.export({ type: 'spki', format: 'der' }))
      .digest()
      .subarray(0, 20),
  ).buffer

const nameOf = (commonName: string): Name =>
  new Name([new RelativeDistinguishedName([new AttributeTypeAndValue({ type: COMMON_NAME, value: new AttributeValue({ utf8String: commonName }) })])])

const extension = (id: string, value: object, critical: boolean): Extension =>
  new Extension({ extnID: id, critical, extnValue: new OctetString(AsnConvert.serialize(value)) })

const PEM_LINE = 64

function pemOf(der: Buffer): string {
  const lines = der.toString('base64').match(new RegExp(`.{1,${PEM_LINE}}`, 'g')) ?? []
  return `-----BEGIN CERTIFICATE-----\n${lines.join('\n')}\n-----END CERTIFICATE-----\n`
}

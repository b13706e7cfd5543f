/** Which CAs are trusted: their keys. One is enough; while one replaces another there are two. */
import { createHash, type KeyObject, X509Certificate } from 'node:crypto'

export type Trust = { readonly region: string; readonly keys: readonly KeyObject[] }

/** SHA-256 of a public key's SPKI, base64url. */
export const fingerprintOf = (publicKey: KeyObject): string =>
  createHash('sha256')
    .update(publicKey.export({ type: 'spki', format: 'der' }))
    .digest('base64url')

export const keysOf = (caPems: readonly string[]): KeyObject[] => caPems.map((pem) => new X509Certificate(pem).publicKey)

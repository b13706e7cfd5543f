/**
 * TLS between our own roles: 1.3 and one cipher, the fastest where processors have AES. A peer's certificate is asked for and looked at by `checkPeer`, not
 * by OpenSSL, so that a refusal can be answered and told; until it is answered nothing of the peer is read beyond the head of its request.
 */
import type { SecureContextOptions, TlsOptions } from 'node:tls'
import { LIMITS } from '@sandglass/contract'

/** PEM; behind the certificate stands the one of its CA, for who has only its fingerprint. */
export type KeyAndCertificate = { readonly key: string; readonly cert: string }

export const TLS_CONTEXT = { minVersion: 'TLSv1.3', ciphers: 'TLS_AES_128_GCM_SHA256' } as const satisfies SecureContextOptions

export const contextOptions = (own: KeyAndCertificate): SecureContextOptions => ({ ...TLS_CONTEXT, ...own })

export const serverOptions = (own: KeyAndCertificate): TlsOptions => ({
  ...contextOptions(own),
  requestCert: true,
  rejectUnauthorized: false,
  handshakeTimeout: LIMITS.tlsHandshakeMs,
})

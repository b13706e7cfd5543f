/**
 * A machine joins: it makes a key, shows the token, and gets a certificate. Whom it shows the token to is decided by the fingerprint in the token: the control
 * plane sends its CA's certificate with its own, and the CA must be that one. Repeated with the same key the answer is the same, so one that is lost costs nothing.
 */
import { createPrivateKey, createPublicKey, generateKeyPairSync, sign, X509Certificate } from 'node:crypto'
import type { TLSSocket } from 'node:tls'
import {
  CodedError,
  type IssuedCertificate,
  IssuedCertificateSchema,
  JOIN_TOKEN_PATTERN,
  type JoinRequest,
  joinProofText,
  LIMITS,
  parserOf,
} from '@sandglass/contract'
import { JudgingAgent, secureUrl } from './identity-agent.ts'
import { pemOfKey } from './identity-file.ts'
import { jsonPost } from './json-post.ts'
import { checkPeer, requirePeer } from './peer.ts'
import { TLS_CONTEXT } from './tls-settings.ts'
import { fingerprintOf } from './trust.ts'

const issued = parserOf(IssuedCertificateSchema)

export const newKeyPem = (): string => pemOfKey(generateKeyPairSync('ed25519').privateKey)

/** @throws CodedError `join_token_unknown` for what cannot be one */
export function fingerprintIn(token: string): string {
  const fingerprint = JOIN_TOKEN_PATTERN.exec(token)?.[1]
  if (fingerprint === undefined) throw new CodedError('join_token_unknown', 'That is not a join token: it begins with sgj_ and has a dot in its middle.')
  return fingerprint
}

export type JoinWish = { readonly controlUrl: string; readonly token: string; readonly name: string; readonly keyPem: string; readonly wallMs: () => number }

/** @throws CodedError what the control plane says; `certificate_refused` when it is not the one of the token; `unavailable` when it cannot be reached */
export async function join({ controlUrl, token, name, keyPem, wallMs }: JoinWish): Promise<IssuedCertificate> {
  const privateKey = createPrivateKey(keyPem)
  const public_key_pem = createPublicKey(privateKey).export({ type: 'spki', format: 'pem' }).toString()
  const asked = { token, name, public_key_pem }
  const body: JoinRequest = { ...asked, proof: sign(null, Buffer.from(joinProofText(asked)), privateKey).toString('base64url') }
  const agent = new JudgingAgent({ keepAlive: false }, () => TLS_CONTEXT, pinnedTo(fingerprintIn(token), wallMs))
  try {
    const url = new URL('/internal/v1/join', secureUrl(controlUrl, 'The control plane'))
    return issued.parse(await jsonPost(url, body, agent, AbortSignal.timeout(LIMITS.hostControlRequestMs)))
  } finally {
    agent.destroy()
  }
}

/** Its region is not known yet; the certificate that is got tells it. */
function pinnedTo(fingerprint: string, wallMs: () => number): (socket: TLSSocket) => void {
  return (socket) => {
    const shown = socket.getPeerX509Certificate()
    const ca = socket.getPeerCertificate(true).issuerCertificate?.raw
    const keys = ca === undefined ? [] : [new X509Certificate(ca).publicKey].filter((key) => fingerprintOf(key) === fingerprint)
    if (keys.length === 0) {
      throw new CodedError('certificate_refused', 'The server at this address is not the control plane that the token is from: its CA is another one.')
    }
    const region = /\/\/sandglass\/([a-z0-9]{2})\//.exec(shown?.subjectAltName ?? '')?.[1] ?? ''
    requirePeer(checkPeer(shown, { region, keys }, wallMs()), 'control-plane')
  }
}

/**
 * Who may speak to the data plane: the one replaceable place of it. Gateways show a bearer token whose SHA-256 this host holds; the token
 * itself is nowhere on it. Compared in constant time.
 */
import { hash, timingSafeEqual } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { CodedError } from '@sandglass/contract'

const HEX_SHA256 = /^[0-9a-f]{64}$/
const BEARER = /^Bearer ([\x21-\x7e]{1,512})$/

export type GatewayToken = {
  /** @throws CodedError `unauthenticated` */
  check(authorization: string | undefined): void
}

/** @throws Error when the file does not hold a SHA-256 in hexadecimal */
export async function loadGatewayToken(path: string): Promise<GatewayToken> {
  const text = (await readFile(path, 'utf8')).trim()
  if (!HEX_SHA256.test(text)) throw new Error(`${path} must hold a SHA-256 in hexadecimal`)
  const expected = Buffer.from(text, 'hex')
  return {
    check(authorization) {
      const token = BEARER.exec(authorization ?? '')?.[1] ?? ''
      const shown = hash('sha256', token, 'buffer')
      if (!timingSafeEqual(shown, expected)) throw new CodedError('unauthenticated', 'This data plane is for gateways of the installation.')
    },
  }
}

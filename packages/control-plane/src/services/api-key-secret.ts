/**
 * Secrets of API keys. Only their SHA-256 is stored, and yet a repeat of the creating request has to show the same secret again: so, when the
 * request carries an Idempotency-Key, the secret is derived from that key's text (of which only a digest is stored, too) and a key of
 * this installation. Neither the database nor the installation's key nor both give it away without the client's text.
 */
import { createHmac, hkdfSync, type KeyObject } from 'node:crypto'
import type { RandomBytes } from '@sandglass/contract'

const SECRET_BYTES = 32

const secretText = (bytes: Uint8Array): string => `sgk_${Buffer.from(bytes).toString('base64url')}`

export const randomSecret = (random: RandomBytes): string => secretText(random(SECRET_BYTES))

export function derivedSecret(installationKey: KeyObject, from: { tenantId: string; apiKeyId: string; idempotencyKey: string }): string {
  const seed = installationKey.export({ type: 'pkcs8', format: 'der' })
  const key = Buffer.from(hkdfSync('sha256', seed, '', 'sandglass api key secrets', SECRET_BYTES))
  return secretText(
    createHmac('sha256', key)
      .update(JSON.stringify([from.tenantId, from.apiKeyId, from.idempotencyKey]))
      .digest(),
  )
}

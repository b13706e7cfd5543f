/**
 * A machine's identity on its disk: one file of PEM blocks, readable by its owner alone. The private key, which is made here and never leaves, then, once the
 * machine has joined, its certificate and those of the CAs. One file, replaced whole, cannot disagree with itself after a crash; `openssl` and `curl --cert` read it.
 */
import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto'
import { mkdir, open, readFile, rename, rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import { CodedError } from '@sandglass/contract'

export type IdentityRecord = {
  readonly keyPem: string
  /** Undefined: it has not joined yet, or was not told so; it asks again with the same key. */
  readonly issued: { readonly certificatePem: string; readonly caPems: readonly string[] } | undefined
}

const BLOCK = /-----BEGIN ([A-Z ]+)-----\n[A-Za-z0-9+/=\n]+-----END \1-----\n?/g
const FILE_MODE = 0o600
const FOLDER_MODE = 0o700

/** @returns undefined when there is none @throws CodedError `invalid_request` for a file that is none of ours; what is in it is no part of the error */
export async function readIdentityFile(path: string): Promise<IdentityRecord | undefined> {
  let text: string
  try {
    text = await readFile(path, 'utf8')
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined
    throw error
  }
  const blocks = [...text.matchAll(BLOCK)]
  const keyPem = blocks.find(([, kind]) => kind === 'PRIVATE KEY')?.[0]
  const [certificatePem, ...caPems] = blocks.filter(([, kind]) => kind === 'CERTIFICATE').map(([block]) => block)
  if (keyPem === undefined || !isReadable(keyPem, [certificatePem ?? [], caPems].flat())) {
    throw new CodedError('invalid_request', `${path} does not hold an identity. Remove it and join again.`)
  }
  return { keyPem, issued: certificatePem === undefined || caPems.length === 0 ? undefined : { certificatePem, caPems } }
}

function isReadable(keyPem: string, certificatePems: readonly string[]): boolean {
  try {
    createPrivateKey(keyPem)
    for (const pem of certificatePems) new X509Certificate(pem)
    return true
  } catch {
    return false
  }
}

export async function writeIdentityFile(path: string, { keyPem, issued }: IdentityRecord): Promise<void> {
  await mkdir(dirname(path), { recursive: true, mode: FOLDER_MODE })
  const beside = `${path}.new`
  await rm(beside, { force: true })
  const file = await open(beside, 'wx', FILE_MODE)
  try {
    await file.writeFile([keyPem, ...(issued === undefined ? [] : [issued.certificatePem, ...issued.caPems])].join(''))
    await file.sync()
  } finally {
    await file.close()
  }
  await rename(beside, path)
}

export const pemOfKey = (key: KeyObject): string => key.export({ type: 'pkcs8', format: 'pem' }).toString()

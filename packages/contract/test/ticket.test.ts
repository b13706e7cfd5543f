import assert from 'node:assert/strict'
import { generateKeyPairSync } from 'node:crypto'
import { test } from 'node:test'
import { CodedError, newHostId, newSandboxId, parseSpec, type RuntimeSpec, type StartTicket, sha256Hex, signPayload, verifySigned } from '../src/index.ts'

const random = (size: number): Uint8Array => new Uint8Array(size).fill(1)
const { privateKey, publicKey } = generateKeyPairSync('ed25519')
const keys = new Map([['k1', publicKey]])

const spec: RuntimeSpec = {
  sandbox: newSandboxId('l1', random),
  driver: 'gvisor',
  template: { name: 'base', digest: `sha256:${'0'.repeat(64)}` },
  resources: { vcpu: 0.5, memory_mb: 512, disk_gb: 2 },
  network: { mode: 'none' },
  hostname: 'sandbox',
  env: { A: 'b' },
  pids_max: 1_024,
}
const text = JSON.stringify(spec)
const ticket: StartTicket = {
  kind: 'start',
  sandbox: spec.sandbox,
  generation: 1,
  host: newHostId(random),
  epoch: 1,
  term: 7,
  spec_sha256: sha256Hex(text),
  amounts: spec.resources,
  pool: null,
}

const refused = (run: () => unknown): void => assert.throws(run, (error: unknown) => error instanceof CodedError && error.code === 'ticket_invalid')

test('a signed ticket verifies and binds its spec', () => {
  const signed = signPayload(ticket, { id: 'k1', privateKey })
  const verified = verifySigned(signed, keys)
  assert.deepEqual(verified, ticket)
  assert.deepEqual(parseSpec(text, ticket), spec)
})

test('a ticket with one changed byte, another key or an unknown key is refused', () => {
  const signed = signPayload(ticket, { id: 'k1', privateKey })
  refused(() => verifySigned({ ...signed, payload: signed.payload.replace('"generation":1', '"generation":2') }, keys))
  const { signature } = signed
  refused(() => verifySigned({ ...signed, signature: `${signature.startsWith('A') ? 'B' : 'A'}${signature.slice(1)}` }, keys))
  refused(() => verifySigned({ ...signed, key_id: 'k2' }, keys))
  refused(() => verifySigned(signPayload(ticket, { id: 'k1', privateKey: generateKeyPairSync('ed25519').privateKey }), keys))
})

test('a spec that is not the one the ticket names, or is for another sandbox, is refused', () => {
  refused(() => parseSpec(`${text} `, ticket))
  const other = JSON.stringify({ ...spec, sandbox: newSandboxId('l2', random) })
  refused(() => parseSpec(other, { ...ticket, spec_sha256: sha256Hex(other) }))
})

test('a signed payload with an unknown field is refused even when the signature is right', () => {
  const signed = signPayload({ ...ticket, extra: 1 } as StartTicket, { id: 'k1', privateKey })
  refused(() => verifySigned(signed, keys))
})

/**
 * Two control planes and two gateways under load, each killed in turn every few seconds. A client with the SDK's own retries sees no failed request, and
 * nothing happens twice: a create makes one sandbox, a command leaves one line.
 */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { Sandbox, type Sandglass } from '@sandglass/sdk'
import { until } from '../persist.ts'
import { Fleet } from './fleet.ts'

/** SANDGLASS_LAB_SECONDS makes it longer. */
const SECONDS = Number(process.env['SANDGLASS_LAB_SECONDS'] ?? 120)
const CREATORS = 3
const RUNNERS = 3
const VICTIMS = ['cp1', 'gw1', 'cp2', 'gw2'] as const
const LABEL = 'replicas'

let fleet: Fleet
before(async () => {
  fleet = await Fleet.start({ hosts: 2 })
})
after(() => fleet[Symbol.asyncDispose]())

type Tally = { creates: number; execs: number; slowestMs: number; kills: number; readonly failures: string[] }

const secondsOf = (ms: number): string => `${(ms / 1_000).toFixed(1)} s`

test(`${SECONDS} seconds of creates and commands while each replica is killed in turn`, { timeout: (SECONDS + 180) * 1_000 }, async (context) => {
  const tally: Tally = { creates: 0, execs: 0, slowestMs: 0, kills: 0, failures: [] }
  const end = performance.now() + SECONDS * 1_000
  const isOver = (): boolean => performance.now() >= end
  const client: Sandglass = fleet.client()
  const asked = new Map<string, string>()

  async function step<T>(what: string, work: () => Promise<T>): Promise<T | undefined> {
    const began = performance.now()
    try {
      return await work()
    } catch (error) {
      tally.failures.push(
        `${what}, ${secondsOf(SECONDS * 1_000 - (end - performance.now()))} into it: ${error instanceof Error ? error.message : String(error)}`,
      )
      return undefined
    } finally {
      tally.slowestMs = Math.max(tally.slowestMs, performance.now() - began)
    }
  }

  const once = (sandbox: Sandbox, file: string, line: string) => sandbox.exec(['sh', '-c', `echo ${line} >> ${file}; echo ${line}`])

  async function create(creator: number): Promise<void> {
    for (let round = 0; !isOver(); round += 1) {
      const key = `${creator}-${round}`
      const sandbox = await step(`creating ${key}`, () => fleet.create({ client, metadata: { load: LABEL, key } }))
      if (sandbox === undefined) continue
      asked.set(key, sandbox.id)
      tally.creates += 1
      const said = await step(`a command in ${sandbox.id}`, () => sandbox.exec(['echo', key]))
      if (said !== undefined) assert.equal(said.stdout, `${key}\n`)
      tally.execs += 1
      await step(`deleting ${sandbox.id}`, () => sandbox.delete())
    }
  }

  async function run(runner: number, sandbox: Sandbox): Promise<void> {
    const file = join(fleet.home, `lines-${runner}`)
    let count = 0
    for (; !isOver(); count += 1) {
      const line = String(count)
      const said = await step(`command ${line} in ${sandbox.id}`, () => once(sandbox, file, line))
      if (said !== undefined) assert.equal(said.stdout, `${line}\n`)
      tally.execs += 1
    }
    const lines = readFileSync(file, 'utf8').trimEnd().split('\n')
    assert.deepEqual(
      lines,
      Array.from({ length: count }, (_, index) => String(index)),
      `every command of runner ${runner} happened once, in its order`,
    )
  }

  async function kill(): Promise<void> {
    for (let turn = 0; !isOver(); turn += 1) {
      const victim = VICTIMS[turn % VICTIMS.length] ?? 'cp1'
      await fleet.kill(victim)
      tally.kills += 1
      await fleet.restart(victim)
      const next = performance.now() + 1_000
      await until(5_000, 'a moment with all of them', () => (performance.now() >= next ? true : undefined))
    }
  }

  const residents = await Promise.all(Array.from({ length: RUNNERS }, () => fleet.create({ client })))
  await Promise.all([kill(), ...Array.from({ length: CREATORS }, (_, index) => create(index)), ...residents.map((sandbox, index) => run(index, sandbox))])
  context.diagnostic(
    `${tally.kills} kills; ${tally.creates} sandboxes and ${tally.execs} commands, ${tally.failures.length} failed; the slowest step took ${secondsOf(tally.slowestMs)}`,
  )
  assert.deepEqual(tally.failures, [])

  const made = new Map<string, string[]>()
  for await (const sandbox of Sandbox.list({ client, metadata: { key: 'load', value: LABEL }, includeEnded: true })) {
    const key = sandbox.resource.metadata['key'] ?? ''
    made.set(key, [...(made.get(key) ?? []), sandbox.id])
  }
  for (const [key, id] of asked) assert.deepEqual(made.get(key), [id], `the create ${key} made one sandbox`)
  assert.equal(made.size, asked.size)
  for (const sandbox of residents) {
    await sandbox.refresh()
    assert.equal(sandbox.status, 'ready')
    assert.equal(sandbox.resource.generation, 1, 'no replica that died has moved a sandbox')
    await sandbox.delete()
  }
  await until(30_000, 'everything being given back', async () => {
    for await (const host of client.hosts.list()) if (host.reserved.memory_mb !== 0 || host.sandboxes !== 0) return undefined
    return true
  })
})

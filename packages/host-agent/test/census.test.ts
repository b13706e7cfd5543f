/** Leftovers of every kind are found and removed; what belongs to another installation, or to nobody, is left alone. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { copyFile, mkdir, readFile, rmdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { differences, inventory } from '../../../tests/failure/leftovers.ts'
import type { Agent } from '../src/agent.ts'
import { findCgroupTree } from '../src/cgroups/cgroup-tree.ts'
import { parseRuntimeName } from '../src/domain/runtime-name.ts'
import { createNamespace, listNamespaces, removeNamespace } from '../src/network/network-namespace.ts'
import { Installation, newSandbox, specOf } from './support/installation.ts'
import { until } from './support/until.ts'

let installation: Installation
let other: Installation
let agent: Agent
let otherAgent: Agent

before(async () => {
  installation = await Installation.create()
  other = await Installation.create()
  agent = await installation.startAgent()
  otherAgent = await other.startAgent()
})
after(async () => {
  await installation[Symbol.asyncDispose]()
  await other[Symbol.asyncDispose]()
})

const leftovers = (): string[] => differences(inventory({ home: installation.dir, name: installation.installation }), new Set())

function newName() {
  const name = parseRuntimeName(`${newSandbox()}-g3`)?.name
  if (name === undefined) throw new Error('not a name')
  return name
}

const cgroupPlaces = (path: string): string[] => findCgroupTree().hierarchies.map((hierarchy) => join(hierarchy, path))

test('a network namespace, a cgroup, a directory and a state file of no record are removed', async () => {
  const { layout } = agent
  const name = newName()
  await createNamespace(layout.netns(name))
  for (const place of cgroupPlaces(layout.cgroup(name))) await mkdir(place, { recursive: true })
  await mkdir(join(layout.runtime(name).dir, 'upper'), { recursive: true })
  await mkdir(layout.runscRoot, { recursive: true })
  await writeFile(join(layout.runscRoot, `${name}_sandbox:${name}.state`), '{}')
  assert.ok(leftovers().length >= 4)
  assert.equal(await agent.census(), 1)
  assert.deepEqual(leftovers(), [])
  assert.equal(await agent.census(), 0)
})

test('a process in a cgroup of no record is killed', async () => {
  const name = newName()
  const places = cgroupPlaces(agent.layout.cgroup(name))
  for (const place of places) await mkdir(place, { recursive: true })
  const child = spawn('sleep', ['1000'], { stdio: 'ignore' })
  const died = new Promise((resolve) => child.once('exit', (_, signal) => resolve(signal)))
  await writeFile(join(places.find((place) => place.includes('/pids/')) ?? places[0] ?? '', 'cgroup.procs'), `${child.pid}`)
  await agent.census()
  assert.equal(await died, 'SIGKILL')
  assert.deepEqual(leftovers(), [])
})

test('what is not named like a runtime is left alone', async () => {
  const { layout } = agent
  const stranger = `${layout.netnsPrefix}stranger`
  await createNamespace(stranger)
  await mkdir(join(layout.runtimes, 'lost+found'))
  assert.equal(await agent.census(), 0)
  assert.ok(listNamespaces(layout.netnsPrefix).includes('stranger') && existsSync(join(layout.runtimes, 'lost+found')))
  await removeNamespace(stranger)
  await rmdir(join(layout.runtimes, 'lost+found'))
})

test('two installations on one machine never touch one another', async () => {
  const sandboxes = [newSandbox(), newSandbox()] as const
  for (const [index, [where, its]] of (
    [
      [installation, agent],
      [other, otherAgent],
    ] as const
  ).entries()) {
    const { ticket, spec } = where.plane.ticket(await specOf(sandboxes[index] ?? ''), { generation: 1, host: its.hostId })
    where.plane.sendStart(ticket, spec)
  }
  await installation.plane.untilReported('ready', sandboxes[0])
  await other.plane.untilReported('ready', sandboxes[1])
  assert.deepEqual([await agent.census(), await otherAgent.census()], [0, 0])
  installation.plane.sendEnd({ sandbox: sandboxes[0], upto: 2, host: agent.hostId })
  await installation.plane.untilReported('ended', sandboxes[0])
  assert.equal(await agent.census(), 0)
  await until('nothing to be left here', () => (leftovers().length === 0 ? true : undefined))
  assert.deepEqual(differences(inventory({ home: other.dir, name: other.installation }), new Set([sandboxes[1]])), [])
  other.plane.sendEnd({ sandbox: sandboxes[1], upto: 2, host: otherAgent.hostId })
  await other.plane.untilReported('ended', sandboxes[1])
})

test('a runtime binary that does not start a canary is offered as not proved, and its tickets are refused', async () => {
  await using broken = await Installation.create({ SANDGLASS_RUNSC: '/bin/false' })
  const its = await broken.startAgent()
  const probe = broken.plane.registrations[0]?.drivers.find(({ name }) => name === 'gvisor')
  assert.equal(probe?.proved, false)
  const sandbox = newSandbox()
  const { ticket, spec } = broken.plane.ticket(await specOf(sandbox), { generation: 1, host: its.hostId })
  broken.plane.sendStart(ticket, spec)
  assert.equal((await broken.plane.untilReported('refused', sandbox)).code, 'isolation_unavailable')
})

test('a template whose bytes are not its digest is not offered', async () => {
  const templates = join(installation.dir, 'templates')
  await mkdir(templates)
  const manifest = JSON.parse(await readFile(join(installation.configuration.templatesDir, 'base.json'), 'utf8'))
  await copyFile('/bin/true', join(templates, manifest.file))
  await writeFile(join(templates, 'base.json'), JSON.stringify(manifest))
  await using broken = await Installation.create({ SANDGLASS_TEMPLATES_DIR: templates })
  const its = await broken.startAgent()
  assert.deepEqual(broken.plane.registrations[0]?.templates, [])
  const sandbox = newSandbox()
  const { ticket, spec } = broken.plane.ticket(await specOf(sandbox, { driver: 'fake' }), { generation: 1, host: its.hostId })
  broken.plane.sendStart(ticket, spec)
  assert.equal((await broken.plane.untilReported('refused', sandbox)).code, 'template_not_found')
})

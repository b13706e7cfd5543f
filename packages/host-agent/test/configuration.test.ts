import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readConfiguration } from '../src/configuration.ts'
import { crashFaults } from '../src/faults/crash-point.ts'

const env = { SANDGLASS_INSTALLATION: 'abc', SANDGLASS_HOST_NAME: 'host-1' }

const wrong: [name: string, value: string][] = [
  ['SANDGLASS_INSTALLATION', ''],
  ['SANDGLASS_INSTALLATION', 'with-dash'],
  ['SANDGLASS_INSTALLATION', '../x'],
  ['SANDGLASS_HOST_NAME', '-x'],
  ['SANDGLASS_HOST_STATE_DIR', 'relative'],
  ['SANDGLASS_DATA_PLANE_PORT', '70000'],
  ['SANDGLASS_DATA_PLANE_PORT', '-1'],
  ['SANDGLASS_CAPACITY_MEMORY_MB', '1e3'],
  ['SANDGLASS_CAPACITY_VCPU', 'many'],
  ['SANDGLASS_RESERVE_CPUS', '-1'],
  ['SANDGLASS_RESERVE_MEMORY_MB', 'half'],
]
for (const [name, value] of wrong) {
  test(`${name}=${JSON.stringify(value)} is refused by name`, () => {
    assert.throws(() => readConfiguration({ ...env, [name]: value }), { code: 'invalid_request', message: new RegExp(name) })
  })
}

test('what is not said has a place of its own', () => {
  const configuration = readConfiguration({ ...env, SANDGLASS_HOME: '/srv/one', SANDGLASS_CACHE: '/srv/cache' })
  assert.equal(configuration.stateDir, '/srv/one/host')
  assert.equal(configuration.runsc, '/srv/cache/bin/runsc')
  assert.equal(configuration.fakeDriver, false)
})

test('a crash point that does not exist stops the agent from starting', () => {
  assert.throws(() => crashFaults('start.nowhere', () => {}), RangeError)
  let deaths = 0
  const faults = crashFaults('start.guest:2', () => {
    deaths += 1
  })
  faults.reach('start.guest')
  faults.reach('start.launched')
  assert.equal(deaths, 0)
  faults.reach('start.guest')
  faults.reach('start.guest')
  assert.equal(deaths, 1)
})

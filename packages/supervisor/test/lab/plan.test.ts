import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { secondsOf } from '../../src/lab/clock.ts'
import { nodeEnvironment } from '../../src/lab/node-environment.ts'
import { apiUrls, DEFAULT_SHAPE, gatewayUrls, internalUrls, names, nodeOf, planLab, shapeOf } from '../../src/lab/plan.ts'

const PLACE = { id: '0123abcd', home: '/lab', cache: '/cache', code: '/code', network: '198.18.7' }
const plan = planLab(DEFAULT_SHAPE, PLACE)
const environmentOf = (node: string, outer: NodeJS.ProcessEnv = {}) => nodeEnvironment(plan, nodeOf(plan, node), outer)

describe('the plan of a lab', () => {
  test('has a database, and control planes, gateways and hosts by number, each at its own address', () => {
    assert.deepEqual(
      plan.nodes.map(({ name, kind, address }) => `${name} ${kind} ${address}`),
      [
        'postgres postgres 198.18.7.10',
        'cp1 control-plane 198.18.7.11',
        'cp2 control-plane 198.18.7.12',
        'gw1 gateway 198.18.7.21',
        'gw2 gateway 198.18.7.22',
        'h1 host-agent 198.18.7.101',
        'h2 host-agent 198.18.7.102',
        'h3 host-agent 198.18.7.103',
      ],
    )
    assert.deepEqual(shapeOf(plan), DEFAULT_SHAPE)
    assert.equal(apiUrls(plan), 'http://198.18.7.11:7070,http://198.18.7.12:7070')
  })

  test('of the largest lab gives every node a name and an address of its own', () => {
    const large = planLab({ hosts: 99, controlPlanes: 9, gateways: 9, driver: 'gvisor' }, PLACE)
    assert.equal(new Set(large.nodes.map((node) => node.address)).size, large.nodes.length)
    assert.equal(new Set(large.nodes.map((node) => node.name)).size, large.nodes.length)
    for (const { name, address } of large.nodes) {
      assert.ok(Number(address.split('.')[3]) < 255, address)
      // An interface's name.
      assert.ok(names.port(name).length <= 15)
    }
    assert.ok(names.uplink(large.id).length <= 15)
  })

  test('refuses what has no room', () => {
    for (const shape of [{ hosts: 0 }, { hosts: 100 }, { gateways: 10 }, { controlPlanes: 0 }])
      assert.throws(() => planLab({ ...DEFAULT_SHAPE, ...shape }, PLACE), { code: 'invalid_request' })
    assert.throws(() => nodeOf(plan, 'h4'), /There is no node h4; there are postgres, cp1/)
  })
})

describe('the environment of a node', () => {
  test('tells every gateway and host of every control plane, and every control plane of every gateway', () => {
    for (const node of ['gw1', 'gw2', 'h1', 'h3']) assert.equal(environmentOf(node)['SANDGLASS_CONTROL_URL'], internalUrls(plan))
    for (const node of ['cp1', 'cp2']) assert.equal(environmentOf(node)['SANDGLASS_GATEWAY_URL'], gatewayUrls(plan))
  })

  test('puts each role at its own address, and each host’s state on its own disk', () => {
    assert.equal(environmentOf('cp2')['SANDGLASS_API_HOST'], '198.18.7.12')
    assert.equal(environmentOf('gw1')['SANDGLASS_GATEWAY_HOST'], '198.18.7.21')
    assert.equal(environmentOf('h2')['SANDGLASS_DATA_PLANE_HOST'], '198.18.7.102')
    assert.equal(environmentOf('h2')['SANDGLASS_HOST_STATE_DIR'], '/lab/nodes/h2/disk/host')
    assert.equal(new Set(['h1', 'h2', 'h3'].map((node) => environmentOf(node)['SANDGLASS_INSTALLATION'])).size, 3)
  })

  test('holds no secret, and of the operator’s only what a role may have', () => {
    const outer = { SANDGLASS_REGION: 'x1', PGPASSWORD: 'secret', AWS_SECRET_ACCESS_KEY: 'secret' }
    assert.equal(environmentOf('cp1', outer)['SANDGLASS_REGION'], 'x1')
    for (const { name } of plan.nodes) assert.ok(!JSON.stringify(environmentOf(name, outer)).includes('secret"'))
  })
})

test('clocks are set in seconds, minutes, hours and days', () => {
  assert.deepEqual(['+3h', '-90m', '30s', '0', '2d', '-5'].map(secondsOf), [10_800, -5_400, 30, 0, 172_800, -5])
  for (const text of ['', 'h', '3 h', '1.5h', '+-3h', '3w']) assert.throws(() => secondsOf(text), { code: 'invalid_request' })
})

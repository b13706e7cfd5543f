import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isInGroupsOf } from '../../src/lab/runtimes.ts'

const H1 = 'lab0123abcdh1'

test('processes of a host’s sandboxes are told by their control groups, in any hierarchy', () => {
  for (const groups of [
    `0::/sandglass-${H1}/sbl1aaaaaaaaaaaaaaaa-g1\n`,
    // Behind the gate, before it has a group of its own.
    `0::/sandglass-${H1}/sandglass-gate\n`,
    `0::/sandglass-${H1}-canary/sb00aaaaaaaaaaaaaaaa-g0\n`,
    `12:pids:/sandglass-${H1}/sbl1aaaaaaaaaaaaaaaa-g1\n0::/\n`,
    // Where this machine is itself in a group.
    `0::/../machine.slice/sandglass-${H1}/sandglass-gate\n`,
  ])
    assert.ok(isInGroupsOf(groups, H1), groups)
})

test('those of another host, the agent and its warden are none', () => {
  for (const groups of [
    '0::/\n',
    '12:pids:/user.slice\n0::/\n',
    `0::/sandglass-${H1}1/sandglass-gate\n`,
    '0::/sandglass-lab0123abcdh2/sandglass-gate\n',
    `0::/other-sandglass-${H1}/x\n`,
    '',
  ])
    assert.ok(!isInGroupsOf(groups, H1), groups)
})

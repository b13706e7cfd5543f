/** `./sandglass sim --seeds 500`: whatever goes wrong in them, no invariant is broken. SANDGLASS_SIM_SEEDS takes another number of seeds. */
import assert from 'node:assert/strict'
import { availableParallelism } from 'node:os'
import { test } from 'node:test'
import { runSeeds } from '@sandglass/sim/seeds'

const COUNT = Number(process.env['SANDGLASS_SIM_SEEDS'] ?? 500)

test(`${COUNT} seeds violate nothing`, async (t) => {
  let done = 0
  let simulatedMs = 0
  const began = performance.now()
  const { violated } = await runSeeds({
    seeds: Array.from({ length: COUNT }, (_, index) => index + 1),
    workers: Math.min(2, availableParallelism()),
    historyLines: 60,
    onSeed: (result) => {
      done += 1
      simulatedMs += result.simulatedMs
    },
  })
  assert.equal(violated?.violation, undefined, `seed ${violated?.seed}: ${violated?.violation}\n${violated?.history.join('\n')}`)
  assert.equal(done, COUNT)
  t.diagnostic(`${done} seeds, ${(simulatedMs / 3_600_000).toFixed(1)} simulated hours in ${((performance.now() - began) / 1_000).toFixed(0)} s`)
})

/** The transition table, exhaustively: in itself, and as the store applies it. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { SANDBOX_STATUSES, type SandboxStatus } from '@sandglass/contract'
import { MOVES, type MoveName, mayMove, STATES } from '../src/domain/sandbox/transitions.ts'
import { moveSandbox } from '../src/store/sandboxes.ts'
import { startRig, usePostgres } from './harness.ts'

const postgres = usePostgres()
const names = Object.keys(MOVES).filter((name): name is MoveName => name in MOVES)

describe('the table', () => {
  test('holds every status of the contract, each with the desired states it can be seen with', () => {
    assert.deepEqual(Object.keys(STATES).sort(), [...SANDBOX_STATUSES].sort())
    for (const name of names) assert.ok(STATES[MOVES[name].to].desired.includes(MOVES[name].desired), name)
  })

  test('a final state is never left, every other one can be', () => {
    for (const status of SANDBOX_STATUSES) assert.equal(!names.some((name) => mayMove(name, status)), STATES[status].final, status)
  })

  test('a move that changes what is wanted advances the generation', () => {
    for (const name of names) {
      const move = MOVES[name]
      const changes = move.from.some((status) => !STATES[status].desired.includes(move.desired))
      if (changes) assert.equal(move.generation, 'next', name)
    }
  })

  test('deleted stays deleted', () => {
    for (const name of names) {
      if (mayMove(name, 'terminating') || mayMove(name, 'terminated')) assert.equal(MOVES[name].desired, 'deleted', name)
    }
  })

  test('delete works from every state that is not deleted', () => {
    for (const status of SANDBOX_STATUSES) {
      const deletable = !STATES[status].desired.includes('deleted')
      assert.equal(mayMove('terminate', status) && mayMove('discard', status), deletable, status)
    }
  })
})

test('the store applies exactly the moves of the table, at exactly the generation they were decided for', async () => {
  await using rig = await startRig(postgres.current)
  const { body } = await rig.create({}, { wait: 0 })
  await rig.stop()
  // The rows are put into states that no sequence of moves could bring them to.
  await rig.rows('ALTER TABLE sandglass.sandboxes DISABLE TRIGGER ALL')
  for (const from of SANDBOX_STATUSES) {
    for (const name of names) {
      for (const generation of [6, 7, 8]) {
        await put(rig.rows, body.id, from)
        const moved = await rig.db.transaction((tx) => moveSandbox(tx, { id: body.id, generation }, name, {}))
        const allowed = mayMove(name, from) && generation === 7
        assert.equal(moved !== undefined, allowed, `${name} from ${from} at ${generation}`)
        const [row] = await rig.rows<{ observed: string; desired: string; generation: number }>(
          'SELECT observed, desired, generation::int FROM sandglass.sandboxes WHERE id = $1',
          [body.id],
        )
        const move = MOVES[name]
        const expected = allowed
          ? { observed: move.to, desired: move.desired, generation: 7 + (move.generation === 'next' ? 1 : 0) }
          : { observed: from, desired: STATES[from].desired[0], generation: 7 }
        assert.deepEqual(row, expected, `${name} from ${from} at ${generation}`)
      }
    }
  }
})

test('the database refuses what no move may do, whatever statement asks for it', async () => {
  await using rig = await startRig(postgres.current)
  await rig.host()
  const { body } = await rig.create({}, { wait: 10 })
  await rig.remove(body.id)
  const change = (set: string) => rig.rows(`UPDATE sandglass.sandboxes SET ${set} WHERE id = $1`, [body.id])
  await assert.rejects(change('generation = generation - 1'), /would go back/)
  await assert.rejects(change("desired = 'running', generation = generation + 1"), /is deleted/)
  await assert.rejects(rig.rows('UPDATE sandglass.host_leases SET epoch = epoch - 1'), /would go back/)
  await assert.rejects(rig.rows('UPDATE sandglass.host_leases SET seq = seq - 1'), /would go back/)
  const living = (await rig.create({}, { wait: 0 })).body.id
  await assert.rejects(rig.rows("UPDATE sandglass.sandboxes SET desired = 'stopped' WHERE id = $1", [living]), /without a new generation/)
  await assert.rejects(rig.rows('UPDATE sandglass.host_capacity SET memory_mb_reserved = memory_mb_capacity + 1'), /check constraint/)
})

async function put(rows: (text: string, values: unknown[]) => Promise<object[]>, id: string, status: SandboxStatus): Promise<void> {
  await rows('UPDATE sandglass.sandboxes SET observed = $2, desired = $3, generation = 7 WHERE id = $1', [id, status, STATES[status].desired[0]])
}

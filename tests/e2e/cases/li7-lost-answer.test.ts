/** LI7: a lost answer leaks a sandbox. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { must } from '../bounds.ts'
import { defineCase } from '../case.ts'
import { type LossyPlatform, lossyPlatform } from '../fixture.ts'
import { refused } from '../subject/coded.ts'

defineCase<LossyPlatform>({
  id: 'LI7',
  title: 'a create whose answer was lost is found again by its key, and never made twice',
  subject: lossyPlatform,
  async run({ platform, loseAnswers, clientCreate, name }) {
    const made = async (marker: string) => (await platform.list()).filter((sandbox) => sandbox.name?.startsWith(marker) === true)

    const key = randomUUID()
    const first = `${name}-a`
    await assert.rejects(
      loseAnswers(1, (through) => through.create({ name: first, idempotencyKey: key })),
      'the first answer is lost',
    )
    const again = await must('the same create with its key', platform.create({ name: first, idempotencyKey: key }))
    assert.deepEqual(
      (await made(first)).map(({ id }) => id),
      [again.id],
      'one sandbox was made for two requests with one key.',
    )
    const third = await must('the same create once more', platform.create({ name: first, idempotencyKey: key }))
    assert.equal(third.id, again.id, 'the same key gives the same sandbox.')
    await refused('another body with the same key', 'idempotency_key_reused', platform.create({ name: `${first}x`, idempotencyKey: key }))
    assert.equal((await made(first)).length, 1, 'a refused create made nothing.')

    const second = `${name}-b`
    const byClient = await must(
      "the client's own retry",
      loseAnswers(2, () => clientCreate(second)),
    )
    assert.deepEqual(
      (await made(second)).map(({ id }) => id),
      [byClient.id],
      'the client retries with a key that it made itself.',
    )

    const key2 = randomUUID()
    const many = await Promise.allSettled(Array.from({ length: 8 }, () => platform.create({ name: `${name}-c`, idempotencyKey: key2, wait: false })))
    const ids = new Set(many.flatMap((result) => (result.status === 'fulfilled' ? [result.value.id] : [])))
    assert.equal(ids.size, 1, 'eight requests at once with one key give one sandbox.')
    assert.equal((await made(`${name}-c`)).length, 1)
    for (const sandbox of await made(name)) await platform.remove(sandbox.id)
  },
  defects: {
    'each request is a new one': {
      breaks: (real) => {
        let count = 0
        const create: LossyPlatform['platform']['create'] = ({ idempotencyKey: _, name, ...options }) => {
          count += 1
          return real.platform.create({ ...options, name: `${name}${count}` })
        }
        return { ...real, platform: { ...real.platform, create } }
      },
      says: /one sandbox was made for two requests with one key/,
    },
    'a key is good for any body': {
      breaks: (real) => {
        const bodies = new Map<string, string>()
        const create: LossyPlatform['platform']['create'] = (options) => {
          const key = options.idempotencyKey ?? ''
          const name = bodies.get(key) ?? options.name ?? ''
          bodies.set(key, name)
          return real.platform.create({ ...options, name })
        }
        return { ...real, platform: { ...real.platform, create } }
      },
      says: /another body with the same key succeeded/,
    },
    'the client retries without its key': {
      breaks: (real) => ({
        ...real,
        async clientCreate(name) {
          await real.platform.create({ name: `${name}-lost` })
          return real.clientCreate(name)
        },
      }),
      says: /the client retries with a key that it made itself/,
    },
  },
})

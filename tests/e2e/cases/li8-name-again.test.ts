/** LI8: a deleted name cannot be used again. */
import assert from 'node:assert/strict'
import { must } from '../bounds.ts'
import { defineCase } from '../case.ts'
import { type Entered, enteredPlatform } from '../fixture.ts'
import { Coded, refused } from '../subject/coded.ts'

const TURNS = { full: 20, small: 3 } as const
const SMALL = { vcpu: 0.1, memoryMb: 128 }

defineCase<Entered>({
  id: 'LI8',
  title: 'a name that is deleted is free at once, in a tight loop, and means the new sandbox',
  subject: enteredPlatform,
  async run({ platform, name }, size) {
    const seen = new Set<string>()
    for (let turn = 1; turn <= TURNS[size]; turn += 1) {
      const { id } = await must(`create ${turn} under the same name`, platform.create({ name, ...SMALL, ttlSeconds: 600 }))
      assert.ok(!seen.has(id), 'each create under the name is a sandbox of its own.')
      seen.add(id)
      assert.equal((await must('reading it by name', platform.get(name))).id, id, 'the name means the new sandbox.')
      await refused('a second create under the name while it is taken', 'name_taken', platform.create({ name, ...SMALL, wait: false }))
      await must(`delete ${turn}`, platform.remove(id))
      await refused('reading the deleted name', 'sandbox_not_found', platform.get(name))
    }
    assert.equal((await platform.list()).filter((sandbox) => sandbox.name === name).length, 0, 'none is left.')
  },
  defects: {
    'a deleted name stays taken': {
      breaks: (real) => {
        let made = 0
        const create: Entered['platform']['create'] = async (options) => {
          made += 1
          // The third call is the second turn's create: the first two are a create and its refused double.
          if (made === 3) throw new Coded('name_taken')
          return real.platform.create(options)
        }
        return { ...real, platform: { ...real.platform, create } }
      },
      says: /create 2 under the same name failed/,
    },
    'the name still means the old sandbox': {
      breaks: (real) => {
        let first: Awaited<ReturnType<Entered['platform']['get']>> | undefined
        const get: Entered['platform']['get'] = async (id) => {
          const found = await real.platform.get(id)
          first ??= found
          return first
        }
        return { ...real, platform: { ...real.platform, get } }
      },
      says: /the name means the new sandbox/,
    },
    'a name is given twice': {
      breaks: (real) => {
        const create: Entered['platform']['create'] = async (options) => {
          try {
            return await real.platform.create(options)
          } catch {
            const { name: _, ...nameless } = options
            return real.platform.create(nameless)
          }
        }
        return { ...real, platform: { ...real.platform, create } }
      },
      says: /a second create under the name while it is taken succeeded/,
    },
  },
})

/** LI5: attaching shortens the life to the client's default. */
import assert from 'node:assert/strict'
import { must } from '../bounds.ts'
import { defineCase } from '../case.ts'
import { type Entered, enteredPlatform } from '../fixture.ts'

const LONG_SECONDS = 7_200

defineCase<Entered>({
  id: 'LI5',
  title: 'listing, reading, attaching, running, opening and a shorter extension never bring the deadline nearer',
  subject: enteredPlatform,
  async run({ platform, name, again }) {
    const made = await must('creating', platform.create({ name, ttlSeconds: LONG_SECONDS }))
    const until = made.expiresAtMs
    assert.ok(until > Date.now() + (LONG_SECONDS - 60) * 1_000, 'the asked life is given.')
    const kept = async (what: string): Promise<void> => {
      const { expiresAtMs } = await platform.get(made.id)
      assert.ok(expiresAtMs >= until, `the deadline is not nearer after ${what} (by ${until - expiresAtMs} ms).`)
    }
    await platform.list()
    await kept('a list')
    await platform.get(name)
    await kept('reading it by name')
    const sandbox = await must('entering', platform.enter(made.id))
    await kept('attaching')
    await must('a command', sandbox.exec({ argv: ['true'] }))
    await kept('a command')
    await must('a file', sandbox.files.write('/tmp/x', new Uint8Array(1)))
    await kept('an upload')
    const terminal = await must('a terminal', sandbox.terminal({ cols: 80, rows: 24, argv: ['/bin/sh'] }))
    await terminal.detach()
    await kept('a terminal')
    const found = await must('get or create with a short life', again(name, 60))
    assert.equal(found.id, made.id, 'get or create finds it')
    await kept('getting it again with a shorter life')
    const shorter = await must('a shorter extension', platform.extend(made.id, 60))
    assert.ok(shorter.expiresAtMs >= until, 'a shorter extension answers with the deadline that stays.')
    await kept('a shorter extension')
    const longer = await must('a longer extension', platform.extend(made.id, LONG_SECONDS + 3_600))
    assert.ok(longer.expiresAtMs > until + 3_000_000, 'a longer extension moves the deadline further.')
    assert.equal((await platform.get(made.id)).expiresAtMs, longer.expiresAtMs)
  },
  defects: {
    'attaching shortens the life': {
      breaks: (real) => {
        let attached = false
        return {
          ...real,
          platform: {
            ...real.platform,
            async enter(id) {
              attached = true
              return real.platform.enter(id)
            },
            async get(id) {
              const seen = await real.platform.get(id)
              return attached ? { ...seen, expiresAtMs: Date.now() + 300_000 } : seen
            },
          },
        }
      },
      says: /the deadline is not nearer after attaching/,
    },
    'an extension sets the deadline whatever it was': {
      breaks: (real) => ({
        ...real,
        platform: {
          ...real.platform,
          extend: async (id, ttlSeconds) => ({ ...(await real.platform.extend(id, ttlSeconds)), expiresAtMs: Date.now() + ttlSeconds * 1_000 }),
        },
      }),
      says: /a shorter extension answers with the deadline that stays/,
    },
    'an extension does nothing': {
      breaks: (real) => ({ ...real, platform: { ...real.platform, extend: (id) => real.platform.get(id) } }),
      says: /a longer extension moves the deadline further/,
    },
  },
})

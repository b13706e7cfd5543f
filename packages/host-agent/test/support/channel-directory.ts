/** A directory with a channel in it, for tests of the host side of the channel. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { ExpectedGuest } from '../../src/domain/judge-preamble.ts'
import { GuestChannel } from '../../src/guest/guest-channel.ts'
import { jsonLog } from '../../src/log.ts'

export const SANDBOX = 'sbloaaaaaaaaaaaaaaaa'

export class ChannelUnderTest {
  readonly path: string
  readonly channel: GuestChannel
  lost = 0
  /** Of its log. */
  readonly lines: string[]
  readonly #dir: string

  private constructor(dir: string, path: string, channel: GuestChannel, lines: string[]) {
    this.lines = lines
    this.#dir = dir
    this.path = path
    this.channel = channel
  }

  static async open(expected: Partial<ExpectedGuest> = {}): Promise<ChannelUnderTest> {
    const dir = await mkdtemp(join(tmpdir(), 'sgha-channel-'))
    const path = join(dir, 'channel.sock')
    const lines: string[] = []
    let onLost = (): void => {}
    const channel = await GuestChannel.listen({
      socket: path,
      epoch: 1,
      expected: () => ({ sandbox: SANDBOX, generation: 1, bootId: null, ...expected }),
      log: jsonLog(
        (line) => lines.push(line),
        () => new Date(),
      ),
      onLost: () => onLost(),
    })
    const made = new ChannelUnderTest(dir, path, channel, lines)
    onLost = () => {
      made.lost += 1
    }
    return made
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.channel.close()
    await rm(this.#dir, { recursive: true, force: true })
  }
}

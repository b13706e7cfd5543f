/** `stop`: ends what runs in sandboxes and keeps their records. */
import { LIMITS } from '@sandglass/contract/limits'
import type { Command } from '../command.ts'
import { eachSandbox } from '../each-sandbox.ts'

export const command: Command = {
  usage: 'stop ID… [--wait S] [--no-wait]',
  help: `Stops sandboxes, and waits until nothing of them runs any more. Name, environment, metadata and size stay, for ${LIMITS.stoppedLifeSeconds / 86_400} days; what was written in them is gone, and they hold no capacity and no quota. Goes on with the others when one fails.

  --wait S    at most so many seconds; what takes longer is stopped all the same. Default 120
  --no-wait   do not wait`,
  run: (io, argv) =>
    eachSandbox(io, argv, async (sandbox, waiting) => {
      const { resource } = await sandbox.stop(waiting)
      const files = resource.writable_layer === 'gone' ? '; what was written in it is gone' : ''
      return { human: `${resource.id} ${resource.status}${files}`, json: resource }
    }),
}

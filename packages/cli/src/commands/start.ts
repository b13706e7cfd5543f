/** `start`: starts sandboxes that are stopped or failed. */
import type { Command } from '../command.ts'
import { eachSandbox } from '../each-sandbox.ts'

export const command: Command = {
  usage: 'start ID… [--wait S] [--no-wait]',
  help: `Starts sandboxes that are stopped or failed, and waits until they are ready: the same id, name and environment, an empty writable layer, and the life that was asked for at create. Goes on with the others when one fails.

  --wait S    at most so many seconds; what takes longer starts all the same. Default 120
  --no-wait   do not wait until they are ready`,
  run: (io, argv) =>
    eachSandbox(io, argv, async (sandbox, waiting) => {
      const { resource } = await sandbox.start(waiting)
      return { human: `${resource.id} ${resource.status}`, json: resource }
    }),
}

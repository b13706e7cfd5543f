/** `rm`: deletes sandboxes and what runs in them. */
import type { Command } from '../command.ts'
import { eachSandbox } from '../each-sandbox.ts'

export const command: Command = {
  usage: 'rm ID… [--wait S] [--no-wait]',
  help: `Deletes sandboxes, and waits until nothing of them runs any more. Goes on with the others when one fails.

  --wait S    at most so many seconds; what takes longer is deleted all the same. Default 60
  --no-wait   do not wait`,
  run: (io, argv) =>
    eachSandbox(io, argv, async (sandbox, waiting) => {
      await sandbox.delete(waiting)
      return { human: sandbox.id, json: { id: sandbox.id } }
    }),
}

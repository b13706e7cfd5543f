/** A sandbox whose terminals are reached by clients that come and go, and by one whose network dies. */
import { Api } from '../failure/api.ts'
import { TerminalSession } from '../failure/terminal-session.ts'
import { sharedInstallation } from './file-installation.ts'
import { type Given, made } from './fixture.ts'
import { StallingProxy } from './stalling-proxy.ts'
import type { Sandboxed } from './subject/sandboxed.ts'
import { sdkSandbox } from './subject/sdk-sandbox.ts'

export type Holder = {
  /** Types a line. */
  readonly type: (line: string) => void
  /** Evaluates a shell expression in the terminal. */
  readonly ask: (expression: string) => Promise<string>
  /** From now on nothing reaches it or comes from it, and nobody is told. */
  readonly partition: () => void
}

export type TerminalClients = {
  readonly sandbox: Sandboxed
  /** Comes to a terminal behind a network of its own. */
  readonly hold: (terminalId: string) => Promise<Holder>
}

const ASK_MS = 15_000

export async function terminalClients(): Promise<Given<TerminalClients>> {
  const installation = await sharedInstallation()
  const sandbox = await made(installation)
  const opened: { readonly proxy: StallingProxy; readonly session: TerminalSession }[] = []
  return {
    value: {
      sandbox: sdkSandbox(sandbox, installation.operatorKey),
      async hold(terminalId) {
        const proxy = await StallingProxy.start(sandbox.resource.gateway_url)
        const api = new Api(installation.apiUrl, installation.operatorKey)
        const session = await TerminalSession.open(api, { id: sandbox.id, gateway_url: proxy.url }, `id=${terminalId}`)
        opened.push({ proxy, session })
        return { type: (line) => session.type(line), ask: (expression) => session.ask(expression, 'held', ASK_MS), partition: () => proxy.stall() }
      },
    },
    async dispose() {
      for (const { proxy, session } of opened) {
        session[Symbol.dispose]()
        await proxy[Symbol.asyncDispose]()
      }
      await sandbox.delete()
    },
  }
}

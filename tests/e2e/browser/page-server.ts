/** Serves one page, the modules that it imports, and takes what it reports. */
import { readFile } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import { extname, join, normalize } from 'node:path'

const TYPES: Readonly<Record<string, string>> = { '.js': 'text/javascript', '.mjs': 'text/javascript', '.html': 'text/html; charset=utf-8' }

export class PageServer implements AsyncDisposable {
  readonly #server: Server
  readonly #report = Promise.withResolvers<string>()
  /** Of the page; set before a browser asks for it. */
  html = ''

  private constructor(places: Readonly<Record<string, string>>) {
    this.#server = createServer(async (request, response) => {
      const path = (request.url ?? '/').split('?')[0] ?? '/'
      if (request.method === 'POST' && path === '/report') {
        const chunks: Buffer[] = []
        for await (const chunk of request) if (chunk instanceof Buffer) chunks.push(chunk)
        this.#report.resolve(Buffer.concat(chunks).toString('utf8'))
        response.end()
        return
      }
      if (path === '/') {
        response.setHeader('content-type', TYPES['.html'] ?? '').end(this.html)
        return
      }
      const [, place = '', ...rest] = path.split('/')
      const folder = places[place]
      const file = folder === undefined ? undefined : join(folder, normalize(`/${rest.join('/')}`))
      try {
        if (file === undefined) throw new Error('no such place')
        response.setHeader('content-type', TYPES[extname(file)] ?? 'text/plain').end(await readFile(file))
      } catch {
        response.writeHead(404).end()
      }
    })
  }

  /** @param places first part of a path, and the folder that it stands for */
  static async start(places: Readonly<Record<string, string>>): Promise<PageServer> {
    const server = new PageServer(places)
    await new Promise<void>((resolve) => server.#server.listen(0, '127.0.0.1', resolve))
    return server
  }

  get origin(): string {
    const address = this.#server.address()
    if (address === null || typeof address === 'string') throw new Error('no address')
    return `http://127.0.0.1:${address.port}`
  }

  /** What the page sent, once. */
  get report(): Promise<string> {
    return this.#report.promise
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections()
    await new Promise((resolve) => this.#server.close(resolve))
  }
}

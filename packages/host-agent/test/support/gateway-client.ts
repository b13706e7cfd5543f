/** A gateway for tests: HTTP/2 to the data plane with a certificate. */
import { type ClientHttp2Session, connect, type IncomingHttpHeaders, type OutgoingHttpHeaders } from 'node:http2'
import { GuestFrameDecoder } from '@sandglass/contract'
import { type KeyAndCertificate, TLS_CONTEXT } from '@sandglass/identity'
import { TEST_AUTHORITY } from '@sandglass/testkit'

export type Answer = { readonly status: number; readonly headers: IncomingHttpHeaders; readonly trailers: IncomingHttpHeaders; readonly body: Buffer }

export class GatewayClient {
  readonly session: ClientHttp2Session
  readonly prefix: string

  /** @param own its certificate and key; empty: none. Default: of a gateway */
  constructor(url: string, sandbox: string, generation: number, own: Partial<KeyAndCertificate> = TEST_AUTHORITY.pair({ role: 'gateway', name: 'test' })) {
    this.session = connect(url, {
      ...TLS_CONTEXT,
      ...own,
      rejectUnauthorized: false,
      maxSessionMemory: 512,
      settings: { initialWindowSize: 1024 * 1024 },
    })
    this.session.on('error', () => {})
    this.prefix = `/sandboxes/${sandbox}/generations/${generation}`
  }

  open(method: string, path: string, headers: OutgoingHttpHeaders = {}, endStream = false) {
    return this.session.request({ ':method': method, ':path': `${this.prefix}${path}`, ...headers }, { endStream })
  }

  send(method: string, path: string, body?: string | Buffer, headers: OutgoingHttpHeaders = {}): Promise<Answer> {
    const stream = this.open(method, path, headers, body === undefined)
    if (body !== undefined) stream.end(body)
    return new Promise((resolve, reject) => {
      const chunks: Buffer[] = []
      let head: IncomingHttpHeaders = {}
      let trailers: IncomingHttpHeaders = {}
      stream.on('response', (received) => {
        head = received
      })
      stream.on('trailers', (received) => {
        trailers = received
      })
      stream.on('data', (chunk: Buffer) => chunks.push(chunk))
      stream.on('error', reject)
      stream.on('close', () => {
        if (stream.rstCode !== 0) reject(new Error(`reset with ${stream.rstCode}`))
        else resolve({ status: Number(head[':status'] ?? 0), headers: head, trailers, body: Buffer.concat(chunks) })
      })
    })
  }

  /** Runs a shell line to its end. */
  async run(shell: string, fields: object = {}): Promise<{ stdout: string; stderr: string; exitCode: number | null }> {
    const answer = await this.send('POST', '/v1/exec', JSON.stringify({ shell, ...fields }), { 'content-type': 'application/json' })
    if (answer.status !== 200) throw new Error(`exec answered ${answer.status}: ${answer.body.toString('utf8')}`)
    const output = { stdout: '', stderr: '' }
    let exitCode: number | null = null
    for (const frame of new GuestFrameDecoder().push(answer.body)) {
      if (frame.stream !== 'status') output[frame.stream] += Buffer.from(frame.bytes).toString('utf8')
      else if (frame.status.type === 'exit') exitCode = frame.status.process.exit_code
      else if (frame.status.type === 'error') throw new Error(`${frame.status.code}: ${frame.status.detail}`)
    }
    return { ...output, exitCode }
  }

  close(): void {
    this.session.destroy()
  }
}

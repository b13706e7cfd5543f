/** A gateway between a scripted control plane and a host, ready to be asked. */
import { LIMITS } from '@sandglass/contract'
import type { PeerRefused } from '@sandglass/identity'
import type { Tracing } from '@sandglass/telemetry'
import type { Certified, TestAuthority } from '@sandglass/testkit'
import { createGateway, type Gateway, HttpControlClient, identityConnector, silentLog, systemWorld, type World } from '../../src/index.ts'
import { GATEWAY, ScriptedControlPlane, type ScriptedKey } from './control-plane.ts'
import { GuestProcess } from './guest-process.ts'
import { guestScript, HOST_ID, type HostScript, ScriptedHost } from './host.ts'
import { type Connect, SessionClient } from './session-client.ts'

export const SANDBOX = 'sbl1abcdefghijklmnop'

export type Ask = Omit<RequestInit, 'headers'> & { readonly key?: ScriptedKey | null; readonly headers?: Record<string, string> }

type BenchOptions = {
  readonly origins?: readonly string[]
  /** Waits of LIMITS.guestAnswerMs and more take only so long. */
  readonly shortenMs?: number
  /** Waits that are longer than this stay as they are; absent: none does. */
  readonly shortensUpToMs?: number
  readonly tracing?: Tracing
  /** Whose certificate the host shows. */
  readonly certified?: Certified & { readonly by?: TestAuthority }
  /** No timer of the gateway ever fires. */
  readonly isTimeless?: boolean
  /** Waits of exactly `ms` take `shortMs`. */
  readonly hurries?: { readonly ms: number; readonly shortMs: number }
}

function shortened(world: World, shortMs: number, upToMs: number): World {
  return { ...world, timer: (ms, callback) => world.timer(ms >= LIMITS.guestAnswerMs && ms <= upToMs ? shortMs : ms, callback) }
}

export class Bench implements AsyncDisposable {
  readonly control: ScriptedControlPlane
  readonly host: ScriptedHost
  readonly gateway: Gateway
  readonly key: ScriptedKey
  readonly url: string
  generation = 3
  /** Hosts that were not who they should have been. */
  readonly refusals: PeerRefused[]
  guest: GuestProcess | undefined

  private constructor(control: ScriptedControlPlane, host: ScriptedHost, gateway: Gateway, url: string, refusals: PeerRefused[]) {
    this.refusals = refusals
    this.control = control
    this.host = host
    this.gateway = gateway
    this.url = url
    this.key = control.addKey('member')
  }

  static async scripted(
    script: HostScript,
    { origins = [], shortenMs, shortensUpToMs = Number.POSITIVE_INFINITY, tracing, isTimeless = false, hurries, certified }: BenchOptions = {},
  ): Promise<Bench> {
    const control = new ScriptedControlPlane()
    const controlUrl = await control.listen()
    const host = await ScriptedHost.start(script, certified)
    const refusals: PeerRefused[] = []
    const real = systemWorld(silentLog, tracing)
    const timed: World = isTimeless ? { ...real, timer: () => () => undefined } : real
    const world: World = hurries === undefined ? timed : { ...timed, timer: (ms, callback) => timed.timer(ms === hurries.ms ? hurries.shortMs : ms, callback) }
    const gateway = createGateway({
      control: new HttpControlClient([controlUrl], GATEWAY),
      hosts: identityConnector(GATEWAY, { note: (refused) => refusals.push(refused) }),
      allowedOrigins: new Set(origins),
      world: shortenMs === undefined ? world : shortened(world, shortenMs, shortensUpToMs),
    })
    const port = await gateway.listen('127.0.0.1', 0)
    const bench = new Bench(control, host, gateway, `http://127.0.0.1:${port}`, refusals)
    bench.route()
    return bench
  }

  static async withGuest(options: BenchOptions = {}): Promise<Bench> {
    const guest = await GuestProcess.start()
    const bench: Bench = await Bench.scripted(
      guestScript(guest, () => bench.generation),
      options,
    )
    bench.guest = guest
    return bench
  }

  /** Tells the control plane where the sandbox is now. */
  route(validForMs = 30_000): void {
    const route = { host_id: HOST_ID, data_plane_url: this.host.url, generation: this.generation, epoch: 1, valid_for_ms: validForMs }
    this.control.sandboxes.set(SANDBOX, { status: 'ready', route })
  }

  ask(path: string, { key = this.key, headers = {}, ...init }: Ask = {}): Promise<Response> {
    const authorization: Record<string, string> = key === null ? {} : { authorization: `Bearer ${key.text}` }
    return fetch(`${this.url}/v1/sandboxes/${SANDBOX}${path}`, { ...init, headers: { ...authorization, ...headers } })
  }

  post(path: string, body: unknown, headers: Record<string, string> = {}): Promise<Response> {
    return this.ask(path, { method: 'POST', body: JSON.stringify(body), headers: { 'content-type': 'application/json', ...headers } })
  }

  connect(path: string, { key = this.key, headers = {}, ...rest }: Partial<Connect> & { readonly key?: ScriptedKey | null } = {}): Promise<SessionClient> {
    const authorization: Record<string, string> = key === null ? {} : { authorization: `Bearer ${key.text}` }
    return SessionClient.connect({ url: `${this.url}/v1/sandboxes/${SANDBOX}${path}`, headers: { ...authorization, ...headers }, ...rest })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.gateway.close()
    await this.host[Symbol.asyncDispose]()
    await this.control.close()
    await this.guest?.[Symbol.asyncDispose]()
  }
}

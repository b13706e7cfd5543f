/** The gateway's process. */

import { setTimeout as delay } from 'node:timers/promises'
import { VERSION } from '@sandglass/contract'
import { COMPILE_ONLY } from '@sandglass/contract/compile-only'
import { type KeeperWorld, keepRenewed, openIdentity, RefusalReporter } from '@sandglass/identity'
import { startTracing } from '@sandglass/telemetry'
import { HttpControlClient } from './auth/control-client.ts'
import { readEnvironment } from './environment.ts'
import { createGateway } from './gateway.ts'
import { identityConnector } from './hosts/host-connection.ts'
import { jsonLog, reasonOf } from './log.ts'
import { systemWorld } from './world.ts'

const log = jsonLog(
  (line) => process.stdout.write(line),
  () => Date.now(),
)

const keeper: KeeperWorld = {
  wallMs: () => Date.now(),
  chance: Math.random,
  wait: (ms, signal) => delay(ms, undefined, { signal }),
  told: (event, reason) => log(reason === null ? 'info' : 'warn', event, reason === null ? {} : { reason }),
}

async function main(): Promise<void> {
  const environment = readEnvironment(process.env)
  const tracing = await startTracing({ service: 'sandglass-gateway', version: VERSION, env: process.env })
  const place = { file: environment.identityFile, controlUrls: environment.controlUrls, name: environment.name, token: environment.joinToken }
  const identity = await openIdentity(place, keeper)
  const stopped = new AbortController()
  const renewals = keepRenewed(identity, place, keeper, stopped.signal).catch(() => undefined)
  const refusals = new RefusalReporter(place.controlUrls, identity)
  const gateway = createGateway({
    control: new HttpControlClient(environment.controlUrls, identity),
    hosts: identityConnector(identity, refusals),
    allowedOrigins: environment.allowedOrigins,
    world: systemWorld(log, tracing),
  })
  const port = await gateway.listen(environment.host, environment.port)
  log('info', 'listening', { host: environment.host, port })
  const stop = (signal: NodeJS.Signals) => {
    log('info', 'stopping', { signal })
    stopped.abort()
    refusals.close()
    Promise.all([gateway.close(), renewals]).then(
      () => process.exit(0),
      (error: unknown) => {
        log('error', 'stop_failed', { reason: reasonOf(error) })
        process.exit(1)
      },
    )
  }
  process.once('SIGTERM', stop)
  process.once('SIGINT', stop)
}

if (process.argv.includes(COMPILE_ONLY)) process.exit(0)
main().catch((error: unknown) => {
  log('error', 'start_failed', { reason: reasonOf(error) })
  process.exit(1)
})

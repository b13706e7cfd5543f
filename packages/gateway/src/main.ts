/** The gateway's process. */
import { VERSION } from '@sandglass/contract'
import { COMPILE_ONLY } from '@sandglass/contract/compile-only'
import { startTracing } from '@sandglass/telemetry'
import { HttpControlClient } from './auth/control-client.ts'
import { readEnvironment } from './environment.ts'
import { createGateway } from './gateway.ts'
import { tokenConnector } from './hosts/host-connection.ts'
import { jsonLog, reasonOf } from './log.ts'
import { systemWorld } from './world.ts'

const log = jsonLog(
  (line) => process.stdout.write(line),
  () => Date.now(),
)

async function main(): Promise<void> {
  const environment = readEnvironment(process.env)
  const tracing = await startTracing({ service: 'sandglass-gateway', version: VERSION, env: process.env })
  const gateway = createGateway({
    control: new HttpControlClient(environment.controlUrls, environment.gatewayToken),
    hosts: tokenConnector(environment.gatewayToken),
    allowedOrigins: environment.allowedOrigins,
    world: systemWorld(log, tracing),
  })
  const port = await gateway.listen(environment.host, environment.port)
  log('info', 'listening', { host: environment.host, port })
  const stop = (signal: NodeJS.Signals) => {
    log('info', 'stopping', { signal })
    gateway.close().then(
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

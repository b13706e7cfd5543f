/** The sandbox that proves a driver: started and taken down by the same steps as any other, of an id that no tenant can have. */
import { randomBytes } from 'node:crypto'
import { CANARY_REGION, DEFAULT_RESOURCES, GuestFrameDecoder, LIMITS, newSandboxId, type RuntimeSpec } from '@sandglass/contract'
import { runtimeName } from '../../domain/runtime-name.ts'
import type { GuestAnswer } from '../../guest/guest-session.ts'
import type { LifecycleWorld } from '../../lifecycle/lifecycle-world.ts'
import { startRuntime } from '../../lifecycle/start-runtime.ts'
import { stopRuntime } from '../../lifecycle/stop-runtime.ts'
import type { Canary } from './probe.ts'

function standardOutput({ status, body }: GuestAnswer): string {
  if (status !== 200) throw new Error(`its guest agent answered ${status}`)
  let text = ''
  for (const frame of new GuestFrameDecoder().push(body)) {
    if (frame.stream === 'stdout') text += Buffer.from(frame.bytes).toString('utf8')
    else if (frame.stream === 'status' && frame.status.type === 'exit' && frame.status.process.exit_code === 0) return text
  }
  throw new Error('its process did not exit well')
}

/** @throws Error when there is no template to start it from */
export function canaryOf(world: LifecycleWorld): Canary {
  return async (signal) => {
    const template = world.templates.list()[0]
    if (template === undefined) throw new Error('there is no template to start a canary from')
    const sandbox = newSandboxId(CANARY_REGION, randomBytes)
    const name = runtimeName({ sandbox, generation: 0 })
    const spec: RuntimeSpec = {
      sandbox,
      driver: 'gvisor',
      template,
      resources: DEFAULT_RESOURCES,
      network: { mode: 'none' },
      hostname: 'canary',
      env: {},
      pids_max: LIMITS.sandboxPids,
    }
    try {
      const { channel } = await startRuntime(world, { runtime: { name, sandbox, generation: 0, epoch: 0 }, spec, before: {}, onLost: () => {} }, signal)
      try {
        return standardOutput(await channel.session().exchange('POST', '/v1/exec', { argv: ['/bin/cat', '/proc/version'] }, signal))
      } finally {
        await channel.close()
      }
    } finally {
      await stopRuntime(world, name, [world.driver('gvisor')])
    }
  }
}

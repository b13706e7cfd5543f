/** Simulated hosts in a thread of their own: they speak the host API, and take every start as ready. */
import { parentPort, workerData } from 'node:worker_threads'
import { SimulatedHost, type SimulatedHostOptions } from '@sandglass/testkit'

export type HostsOrder = Pick<SimulatedHostOptions, 'url' | 'token'> & {
  readonly count: number
  readonly capacity: NonNullable<SimulatedHostOptions['capacity']>
  readonly template: { readonly name: string; readonly digest: string }
}

const { count, template, ...options }: HostsOrder = workerData
for (let index = 0; index < count; index += 1) {
  await new SimulatedHost({ ...options, name: `simulated-${index}`, templates: [template], persistent: true }).join()
}
parentPort?.postMessage('joined')

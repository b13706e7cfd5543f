/** Simulated hosts in a thread of their own: they speak the host API, and take every start as ready. */
import { createPrivateKey } from 'node:crypto'
import { parentPort, workerData } from 'node:worker_threads'
import { SimulatedHost, type SimulatedHostOptions, TestAuthority } from '@sandglass/testkit'

export type HostsOrder = Pick<SimulatedHostOptions, 'url'> & {
  /** Key of the control plane's CA, PEM: it makes the hosts' certificates. */
  readonly authorityKey: string
  readonly count: number
  readonly capacity: NonNullable<SimulatedHostOptions['capacity']>
  readonly template: { readonly name: string; readonly digest: string }
}

const { count, template, authorityKey, ...options }: HostsOrder = workerData
const authority = new TestAuthority(createPrivateKey(authorityKey))
const identity = (name: string) => authority.identity({ role: 'host', name })
for (let index = 0; index < count; index += 1) {
  await new SimulatedHost({ ...options, identity, name: `simulated-${index}`, templates: [template], persistent: true }).join()
}
parentPort?.postMessage('joined')

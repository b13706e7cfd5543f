/** A host as placement and pools see it: empty, ready, able to run the fake driver. */
import type { HostOffer } from '../src/domain/placement/plan.ts'

export const offerOf = (id: string, change: Pick<HostOffer, 'capacity'> & Partial<HostOffer>): HostOffer => ({
  id,
  name: id,
  region: 'l1',
  zone: null,
  hostClass: null,
  epoch: 1,
  drivers: ['fake'],
  templateDigests: ['d1'],
  reserved: { vcpuMilli: 0, memoryMb: 0, diskGb: 0 },
  cordoned: false,
  lost: false,
  ...change,
})

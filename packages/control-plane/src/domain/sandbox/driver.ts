/** Which driver runs a sandbox: a boundary that no host has proved is refused, never replaced by a weaker one. */
import { CodedError, type Isolation } from '@sandglass/contract'
import type { HostOffer } from '../placement/plan.ts'

/** Strongest first. `fake` isolates nothing and is only for those who name it. */
const AUTO: readonly string[] = ['gvisor']
const KNOWN: readonly string[] = ['gvisor', 'fake']

/** Has one of these hosts proved it? */
export const provesIsolation = (isolation: Isolation, hosts: readonly Pick<HostOffer, 'drivers'>[]): boolean => provedDriver(isolation, hosts) !== undefined

/**
 * @param hosts every known host; with none, the request may wait for one
 * @throws CodedError `isolation_unavailable`
 */
export function chooseDriver(isolation: Isolation, hosts: readonly Pick<HostOffer, 'drivers'>[]): string {
  const proved = provedDriver(isolation, hosts)
  if (proved !== undefined) return proved
  const [first] = wantedDrivers(isolation)
  if (hosts.length === 0 && first !== undefined && KNOWN.includes(first)) return first
  throw new CodedError(
    'isolation_unavailable',
    isolation === 'auto' ? `No host has proved an isolation to run untrusted code (${AUTO.join(', ')}).` : `No host has proved the isolation ${isolation}.`,
  )
}

const wantedDrivers = (isolation: Isolation): readonly string[] => (isolation === 'auto' ? AUTO : [isolation])

const provedDriver = (isolation: Isolation, hosts: readonly Pick<HostOffer, 'drivers'>[]): string | undefined =>
  wantedDrivers(isolation).find((driver) => hosts.some((host) => host.drivers.includes(driver)))

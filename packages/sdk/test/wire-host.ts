/** A host as the API tells it. */
import type { Host } from '@sandglass/contract'

export const wireHost = (change: Partial<Host> = {}): Host => ({
  id: 'hoaaaaaaaaaaaaaaaa',
  name: 'host-1',
  region: 'l1',
  status: 'ready',
  cordoned: false,
  drain: null,
  labels: {},
  epoch: 1,
  version: '0.1.0',
  capacity: { vcpu: 8, memory_mb: 1_000, disk_gb: 10 },
  reserved: { vcpu: 0.5, memory_mb: 512, disk_gb: 2 },
  drivers: [{ name: 'gvisor', proved: true, version: '20260905', detail: 'kernel 4.19.0-gvisor', probe_ms: 400 }],
  sandboxes: 1,
  pool: { target: 0, held: 0, memory_mb: 0, disk_gb: 0 },
  lease: { state: 'held', lease_seconds: 30, fence_grace_seconds: 10, fenced_at: null },
  renewed_at: '2026-01-01T00:00:00Z',
  lease_age_seconds: 2.5,
  created_at: '2026-01-01T00:00:00Z',
  ...change,
})

/** Gateways are not part of the simulation: the data plane has a place and nobody to come there. */
export class DataPlaneServer {
  readonly counters = { requests: 0, open: 0 }

  async listen(): Promise<string> {
    return 'https://data-plane.simulated'
  }

  async close(): Promise<void> {}
}

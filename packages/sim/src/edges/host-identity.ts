/** Certificates are not part of the simulation: a host is who it says it is, and its network is the only one. */
export async function hostIdentity(): Promise<object> {
  return {
    identity: { onReplaced: () => () => undefined },
    refusals: { note: () => undefined, close: () => undefined },
    renew: (signal: AbortSignal) => new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true })),
  }
}

/** Disks of simulated machines are slow, and never full: there is nothing to keep room for. */
export async function fillReserve(): Promise<void> {}

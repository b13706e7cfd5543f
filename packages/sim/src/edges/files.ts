/** The one file that an agent reads by itself: the token that it shows its control plane. Everything else goes through `atomic-file.ts`. */
export * from 'node:fs/promises'

export const SIMULATED_HOST_TOKEN = 'token-of-the-simulation'

export const readFile = async (): Promise<string> => SIMULATED_HOST_TOKEN

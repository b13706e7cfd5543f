/** A client at a terminal, as a person at a screen is. */
import type { Bench } from './bench.ts'
import type { SessionClient } from './session-client.ts'

const CREDIT_BYTES = 1024 * 1024

export async function openTerminal(bench: Bench, query: string): Promise<SessionClient> {
  const client = await bench.connect(`/terminal${query}`)
  client.credit(CREDIT_BYTES)
  return client
}

export const type = (client: SessionClient, text: string): Promise<void> => client.write(Buffer.from(text))

/** Replicas of one control plane: the next one is asked when one cannot be reached. For what is asked seldom; `Replicas` of the contract is for the rest. */
import { CodedError } from '@sandglass/contract'

/** @throws what a replica says; `unavailable` when none can be reached */
export async function askInTurn<Url, Answer>(urls: readonly Url[], ask: (url: Url) => Promise<Answer>): Promise<Answer> {
  let failure: unknown
  for (const url of urls) {
    try {
      return await ask(url)
    } catch (error) {
      if (!(error instanceof CodedError) || error.code !== 'unavailable') throw error
      failure = error
    }
  }
  throw failure
}

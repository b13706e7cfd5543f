/** The refusal of a host that does not hold the epoch it speaks for. It tells the epoch that there is, from which the host may ask for the next one. */
import { CodedError } from '@sandglass/contract'

/** @param told the epoch that the database holds for the host now */
export const staleEpoch = (claimed: number, told: number): CodedError =>
  new CodedError('stale_epoch', `The host does not hold epoch ${claimed}; its epoch is ${told}.`, { epoch: told })

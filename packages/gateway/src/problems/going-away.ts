import { CodedError } from '@sandglass/contract'

/** The reason that streams are closed with when the gateway stops. */
export class GoingAway extends CodedError {
  constructor() {
    super('unavailable', 'This gateway stops; connect again.')
  }
}

/** A simulated runtime with its guest: what survives the agent that started it. */
export type Owner = { readonly sandbox: string; readonly generation: number }

export type Runtime = {
  readonly name: string
  readonly guestBootId: string
  readonly memoryMb: number
  /** Its launcher is still at work: it may come up by itself, whatever becomes of the agent. */
  state: 'launching' | 'running'
  /** Does not run although it is there. */
  frozen: boolean
  /** Told once, never changed. */
  identity: Owner | null
  /** Never dials. */
  readonly silent: boolean
}

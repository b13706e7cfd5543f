/** A broken invariant is a defect of ours, not an error of a caller: it stops the work at hand and is shown to clients as `internal`. */
export class InvariantBroken extends Error {
  override readonly name = 'InvariantBroken'
}

export function invariant(condition: boolean, what: string): asserts condition {
  if (!condition) throw new InvariantBroken(what)
}

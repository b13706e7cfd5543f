/**
 * Cases from the field, and the proof that their tests can fail.
 *
 * A case is a check against a subject (a narrow view of the product). Each case names deliberate defects: wrappers that make the subject
 * misbehave in exactly the way that was seen in the field. The check runs against the real subject and must pass; then it runs once
 * against each wrapped subject and must fail, with an assertion, for the reason that the defect names. A check that stays green with its
 * defect proves nothing, so that is a failing test. Self-checks run at the small size: same assertions, less repetition and shorter bounds.
 */
import { AssertionError } from 'node:assert'
import assert from 'node:assert/strict'
import { test } from 'node:test'

/** `full` is the case as written; `small` is for self-checks. */
export type Size = 'full' | 'small'

export type Defect<Subject> = {
  /** Wraps a subject so that it misbehaves. */
  readonly breaks: (subject: Subject) => Subject
  /** What the failing assertion says; a failure for another reason does not count. */
  readonly says: RegExp
}

export type Case<Subject> = {
  readonly id: string
  readonly title: string
  /** A subject of its own for one run, given back at its end. */
  readonly subject: () => Promise<{ readonly value: Subject; readonly dispose: () => Promise<void> }>
  readonly run: (subject: Subject, size: Size) => Promise<void>
  readonly defects: Readonly<Record<string, Defect<Subject>>>
  readonly timeoutMs?: number
}

const DEFAULT_TIMEOUT_MS = 180_000

/** Runs a check that has to fail. @throws AssertionError when it passes, or fails for another reason */
export async function mustTurnRed(name: string, says: RegExp, run: () => Promise<void>): Promise<void> {
  let seen: unknown
  try {
    await run()
  } catch (error) {
    seen = error
  }
  if (seen === undefined) assert.fail(`The check stayed green although ${name}.`)
  if (!(seen instanceof AssertionError)) throw new Error(`The check failed without an assertion although ${name}.`, { cause: seen })
  if (says.test(seen.message)) return
  const other = new AssertionError({ message: `The check turned red for another reason than that ${name}: ${seen.message}` })
  // What was behind the other reason is only there.
  other.cause = seen
  throw other
}

/** Registers the tests of a case: one that must pass, and one for each defect that must turn it red. */
export function defineCase<Subject>(definition: Case<Subject>): void {
  const timeout = definition.timeoutMs ?? DEFAULT_TIMEOUT_MS
  const once = async (use: (subject: Subject) => Promise<void>): Promise<void> => {
    const { value, dispose } = await definition.subject()
    try {
      await use(value)
    } finally {
      await dispose()
    }
  }
  test(`${definition.id} ${definition.title}`, { timeout }, () => once((subject) => definition.run(subject, 'full')))
  for (const [name, defect] of Object.entries(definition.defects)) {
    test(`${definition.id} turns red when ${name}`, { timeout }, () =>
      once((subject) => mustTurnRed(name, defect.says, () => definition.run(defect.breaks(subject), 'small'))),
    )
  }
}

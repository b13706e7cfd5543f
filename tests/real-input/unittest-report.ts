/** Reads what Python's unittest prints with `-v`. */

export type Counts = {
  readonly ran: number
  readonly failures: number
  readonly errors: number
  readonly skipped: number
  readonly expectedFailures: number
  readonly unexpectedSuccesses: number
}

const FIELDS = {
  failures: 'failures',
  errors: 'errors',
  skipped: 'skipped',
  'expected failures': 'expectedFailures',
  'unexpected successes': 'unexpectedSuccesses',
} as const

/** The closing counts. @throws when the text has no closing lines */
export function closingCounts(output: string): Counts {
  const ran = /^Ran (\d+) tests? in /m.exec(output)?.[1]
  const result = /^(?:OK|FAILED|NO TESTS RAN)(?: \(([^)]*)\))?$/m.exec(output.slice(output.lastIndexOf('\nRan ')))
  if (ran === undefined || result === null) throw new Error(`No closing counts in ${JSON.stringify(output.slice(-500))}.`)
  const counts = { ran: Number(ran), failures: 0, errors: 0, skipped: 0, expectedFailures: 0, unexpectedSuccesses: 0 }
  for (const part of (result[1] ?? '').split(', ').filter((text) => text !== '')) {
    const [word = '', count] = part.split('=')
    const field = Object.entries(FIELDS).find(([name]) => name === word)?.[1]
    if (field === undefined) throw new Error(`An unknown count: ${part}.`)
    counts[field] = Number(count)
  }
  return counts
}

/** Each test with how it ended, ordered by name. */
export function outcomes(output: string): string[] {
  return [...output.matchAll(/^(\w+ \([\w.]+\))(?:\n.*?)?? \.\.\. (ok|FAIL|ERROR|skipped .*|expected failure|unexpected success)$/gm)]
    .map(([, name, how]) => `${name} ${how}`)
    .sort()
}

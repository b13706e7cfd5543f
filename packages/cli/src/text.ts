/** Text for people. What comes from a sandbox may hold control characters; they are shown, never obeyed by a terminal. */

const CONTROL = /[\u0000-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g

/** One line without control characters. */
export function plain(text: string): string {
  return text.replace(CONTROL, (character) => {
    if (character === '\n') return '\\n'
    if (character === '\t') return '\\t'
    return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
  })
}

const ORDINARY = /^[A-Za-z0-9_@%+=:,./-]+$/

/** A command line that a shell would read as these arguments. */
export function shellQuoted(argv: readonly string[]): string {
  return argv.map((argument) => (ORDINARY.test(argument) ? argument : `'${argument.replaceAll("'", `'\\''`)}'`)).join(' ')
}

export function shortened(text: string, characters: number): string {
  return text.length <= characters ? text : `${text.slice(0, characters - 1)}…`
}

export function thousands(value: number): string {
  return value.toLocaleString('en-US')
}

const UNITS = ['B', 'KB', 'MB', 'GB', 'TB']

/** Powers of 1,024, as memory and disk are given. */
export function bytesText(bytes: number): string {
  let value = bytes
  let unit = 0
  while (value >= 1024 && unit < UNITS.length - 1) {
    value /= 1024
    unit += 1
  }
  return `${value < 10 && unit > 0 ? value.toFixed(1) : Math.round(value)} ${UNITS[unit] ?? ''}`
}

/** `52 min`, `3 h`, `2 days`. */
export function durationText(ms: number): string {
  const seconds = Math.round(Math.abs(ms) / 1000)
  if (seconds < 120) return `${seconds} s`
  if (seconds < 2 * 3600) return `${Math.round(seconds / 60)} min`
  if (seconds < 48 * 3600) return `${Math.round(seconds / 3600)} h`
  return `${Math.round(seconds / 86_400)} days`
}

export function relativeTime(at: string | null, nowMs: number): string {
  if (at === null) return '-'
  const difference = Date.parse(at) - nowMs
  return difference >= 0 ? `in ${durationText(difference)}` : `${durationText(difference)} ago`
}

/** `docs/errors.md`, the line of documentation of each error code, made from the registry. */
import { ERRORS } from '@sandglass/contract'

export function errorsPage(): string {
  const rows = Object.entries(ERRORS).map(
    ([code, entry]) =>
      `| <a id="${code}"></a>\`${code}\` | ${entry.status} | ${entry.title} | ${entry.retryable ? 'yes' : 'no'} | ${entry.next.replaceAll('|', '\\|')} |`,
  )
  return [
    '# Errors',
    '',
    'Every error is an `application/problem+json` document (RFC 9457) with one of these codes.',
    '',
    '| code | status | title | retryable | what to do |',
    '| --- | --- | --- | --- | --- |',
    ...rows,
    '',
  ].join('\n')
}

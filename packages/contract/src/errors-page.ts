/**
 * The page of error codes that the `type` of a problem leads to, for browsers.
 *
 * A `type` is a path on the server that answered, so every server of problems that people ask serves this page: the API and each gateway,
 * which may be at addresses that do not know each other's.
 */
import { ERRORS } from './errors.ts'
import { html, page, prose } from './html.ts'

/** @param reference path of the API reference on the same server, where there is one */
export function errorsPage(reference?: string): string {
  const rows = Object.entries(ERRORS).map(
    ([code, { status, title, retryable, next }]) =>
      html`<tr id="${code}"><td><a href="#${code}"><code>${code}</code></a></td><td>${status}</td><td>${title}</td><td>${retryable ? 'yes' : 'no'}</td><td>${prose(next)}</td></tr>`,
  )
  return page(
    'Sandglass error codes',
    html`<h1>Error codes</h1>
<p>Every error is <code>application/problem+json</code> (RFC 9457); its <code>code</code> is one of these.${reference === undefined ? '' : html` <a href="${reference}">API reference</a>`}</p>
<table><thead><tr><th>code</th><th>status</th><th>title</th><th>retry</th><th>what to do</th></tr></thead><tbody>
${rows}
</tbody></table>`,
  )
}

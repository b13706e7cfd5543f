/** Pages as text: everything that comes in is escaped, and nothing is asked of any other place; the header forbids it. */
import { createHash } from 'node:crypto'

/** Text that is HTML already. Made by `html` and `joined` only. */
export type Html = { readonly text: string }

export type HtmlValue = string | number | Html | readonly Html[]

/** Escapes what is filled in. */
export function html(parts: TemplateStringsArray, ...values: readonly HtmlValue[]): Html {
  return { text: parts.map((part, index) => part + (index < values.length ? textOf(values[index] ?? '') : '')).join('') }
}

function textOf(value: HtmlValue): string {
  if (typeof value === 'string' || typeof value === 'number') return escaped(String(value))
  return 'text' in value ? value.text : value.map((one) => one.text).join('\n')
}

const escaped = (text: string): string => text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`)

/** Descriptions have `code` between backticks. */
export const prose = (text: string): Html => ({ text: escaped(text).replace(/`([^`]+)`/g, '<code>$1</code>') })

const STYLE = `
:root{color-scheme:light dark;--line:#8884;--soft:#8881;--accent:light-dark(#0b57d0,#8ab4f8);--mark:light-dark(#fff3bf,#4a3f10)}
body{font:15px/1.55 system-ui,sans-serif;margin:0 auto;max-width:64rem;padding:1rem 1.2rem 6rem}
h1{font-size:1.6rem}h2{font-size:1.2rem;margin-top:2.5rem;border-bottom:1px solid var(--line)}h3{font-size:1rem;margin:1.8rem 0 .3rem}
a{color:var(--accent)}code{font:.9em ui-monospace,monospace;background:var(--soft);padding:.05em .3em;border-radius:.25em;overflow-wrap:anywhere}
nav ul{columns:2;list-style:none;padding:0}@media(max-width:45rem){nav ul{columns:1}}
table{border-collapse:collapse;width:100%}td,th{padding:.3rem .8rem .3rem 0;text-align:left;vertical-align:top;border-bottom:1px solid var(--line)}
.method{display:inline-block;min-width:4.2em;font-weight:600}.note{opacity:.75}:target{background:var(--mark)}`

/** No script, no other origin, and of styles only the one above. */
export const PAGE_HEADERS = {
  'content-type': 'text/html; charset=utf-8',
  'content-security-policy': `default-src 'none'; style-src 'sha256-${createHash('sha256').update(STYLE).digest('base64')}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
} as const

export const page = (title: string, body: Html): string =>
  html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title}</title>
<style>${{ text: STYLE }}</style>
</head>
<body>
${body}
</body>
</html>
`.text

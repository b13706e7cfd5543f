/** Whose request it is: without certificates, the host that it is about. */
type Asked = { readonly url: string; readonly body?: unknown }

export function tlsPeer({ url, body }: Asked): object {
  const told = typeof body === 'object' && body !== null && 'host_id' in body ? String(body.host_id) : ''
  const name = /^\/internal\/v1\/hosts\/(ho[a-z2-7]{16})\//.exec(url)?.[1] ?? told
  return { region: 'l1', role: 'host', name, keyFingerprint: name, notAfterMs: Number.MAX_SAFE_INTEGER }
}

export const shownKey = (): undefined => undefined

import { environment } from './env.ts'

/** True when the environment names a proxy for this address. The fast client knows none. */
export function proxyApplies(url: string): boolean {
  const scheme = url.startsWith('https:') ? 'https' : 'http'
  if ((variable(`${scheme}_proxy`) ?? variable('all_proxy')) === undefined) return false
  const { hostname, port } = new URL(url)
  return !isExempt(hostname, port || (scheme === 'https' ? '443' : '80'))
}

function variable(name: string): string | undefined {
  return environment(name) ?? environment(name.toUpperCase())
}

/** `NO_PROXY`: names, domains with a leading dot or `*.`, with or without a port; `*` is all. */
function isExempt(host: string, port: string): boolean {
  const entries = (variable('no_proxy') ?? '').toLowerCase().split(/[\s,]+/)
  return entries.filter(Boolean).some((entry) => {
    if (entry === '*') return true
    const [, name = '', entryPort] = /^(.*?)(?::(\d+))?$/.exec(entry) ?? []
    if (entryPort !== undefined && entryPort !== port) return false
    const domain = name.replace(/^\*?\./, '')
    return host === domain || host.endsWith(`.${domain}`)
  })
}

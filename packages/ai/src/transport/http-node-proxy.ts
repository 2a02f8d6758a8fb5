import type { Socket } from 'node:net'
import { isInNetwork } from '@skein/base'
import { environment } from './keys.ts'
import { ResponseParser } from './http-node-parser.ts'

/** A proxy that the environment names. */
export interface Proxy {
  /** The address, without user name and password. */
  readonly url: URL
  /** The value of the `proxy-authorization` header, which only the proxy may see. */
  readonly authorization: string | undefined
}

/**
 * Returns the proxy for an address, from `HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY` and `NO_PROXY` or their
 * lower-case names, which take precedence. Throws if the value of a variable cannot be used, because a
 * request must not bypass a configured proxy.
 */
export function proxyFor(url: URL): Proxy | undefined {
  const scheme = url.protocol === 'https:' ? 'https' : 'http'
  const value = variable(`${scheme}_proxy`) ?? variable('all_proxy')
  if (value === undefined || isExempt(url)) return undefined
  const text = /^[a-z][a-z\d+.-]*:\/\//i.test(value) ? value : `http://${value}`
  const proxyUrl = URL.canParse(text) ? new URL(text) : undefined
  if (proxyUrl?.protocol !== 'http:' && proxyUrl?.protocol !== 'https:') {
    // The value is not quoted, because it may contain a password.
    const problem = proxyUrl ? `has the protocol "${proxyUrl.protocol}"` : 'is not an address'
    throw new Error(
      `the proxy for ${scheme} in the environment ${problem}; only http and https proxies are supported`,
    )
  }
  const { username, password } = proxyUrl
  const login = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`
  return {
    url: new URL(proxyUrl.origin),
    authorization: login === ':' ? undefined : `Basic ${Buffer.from(login).toString('base64')}`,
  }
}

function variable(name: string): string | undefined {
  // In a CGI program anyone can set HTTP_PROXY by sending a header named `Proxy` (CVE-2016-5385), so that
  // name is ignored there.
  const isForged = name === 'http_proxy' && environment('REQUEST_METHOD') !== undefined
  return environment(name) ?? (isForged ? undefined : environment(name.toUpperCase()))
}

/**
 * Checks whether `NO_PROXY` lists the address. Entries are host names, which include their subdomains,
 * domains with a leading dot or `*.`, IP addresses and networks (`10.0.0.0/8`), each with an optional port;
 * `*` means every host.
 */
function isExempt(url: URL): boolean {
  const host = bareHost(url.hostname).toLowerCase().replace(/\.$/, '')
  const port = url.port || (url.protocol === 'https:' ? '443' : '80')
  const entries = (variable('no_proxy') ?? '').toLowerCase().split(/[\s,]+/)
  return entries.filter(Boolean).some((entry) => {
    if (entry === '*') return true
    const { name, port: entryPort } = splitPort(entry)
    if (entryPort !== undefined && entryPort !== port) return false
    const domain = name.replace(/^\*?\./, '')
    return host === domain || host.endsWith(`.${domain}`) || isInNetwork(host, bareHost(name))
  })
}

/** Splits `host:port` and `[ipv6]:port`. An IPv6 address without brackets has no port. */
function splitPort(entry: string): { readonly name: string; readonly port: string | undefined } {
  const colon = entry.lastIndexOf(':')
  const isPort = colon > 0 && /^\d{1,5}$/.test(entry.slice(colon + 1))
  const isAddress = entry.indexOf(':') !== colon && entry[colon - 1] !== ']'
  return isPort && !isAddress
    ? { name: entry.slice(0, colon), port: entry.slice(colon + 1) }
    : { name: entry, port: undefined }
}

/** Returns a host name without the brackets of an IPv6 address. */
export function bareHost(hostname: string): string {
  return hostname.replace(/^\[|\]$/g, '')
}

/**
 * Asks the proxy at the other end of a socket for a tunnel to the host (RFC 9110 §9.3.6). Resolves once the
 * proxy has made it; everything written afterwards goes to the host.
 */
export function openTunnel(socket: Socket, url: URL, proxy: Proxy): Promise<void> {
  const host = `${url.hostname}:${url.port || 443}`
  const login = proxy.authorization ? `proxy-authorization: ${proxy.authorization}\r\n` : ''
  const parser = new ResponseParser()
  return new Promise((resolve, reject) => {
    const end = (error: Error | undefined): void => {
      socket.off('data', onData).off('error', onError).off('close', onClose)
      socket.on('error', () => {}) // from now on TLS reports errors, or the socket is not used
      if (!error) return resolve()
      socket.destroy()
      reject(error)
    }
    const refuse = (why: string): void => end(proxyError(proxy, why))
    const onError = (error: Error): void => end(error)
    const onClose = (): void => refuse('closed the connection')
    const onData = (chunk: Buffer): void => {
      let early: Buffer
      try {
        early = parser.push(chunk)
      } catch {
        return refuse('did not answer with HTTP')
      }
      if (!parser.hasHead) return
      const { status } = parser
      if (status < 200 || status > 299)
        return refuse(`refused the connection to ${host} (HTTP ${status})`)
      // In TLS the client sends first, so these bytes are not from the host.
      if (early.length > 0) return refuse('sent unexpected data')
      end(undefined)
    }
    socket.on('data', onData).on('error', onError).on('close', onClose)
    socket.write(`CONNECT ${host} HTTP/1.1\r\nhost: ${host}\r\n${login}\r\n`)
  })
}

function proxyError(proxy: Proxy, why: string): Error {
  return Object.assign(new Error(`the proxy ${proxy.url.host} ${why}`), { code: 'EPROXY' })
}

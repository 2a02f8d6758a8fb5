import { ErrorCode, isUPPError, UPPError } from '../contract/error.ts'
import type { ErrorContext } from './endpoint.ts'

/** Converts a failure below HTTP (connection, DNS, TLS) into a UPPError. */
export function networkError(error: unknown, context: ErrorContext, url: string): UPPError {
  if (isUPPError(error)) return error
  const host = URL.canParse(url) ? new URL(url).host : 'the vendor'
  const links = chainOf(error)
  // `fetch` puts the code of the real cause one or two levels down in `cause`.
  const codes = links.flatMap((link) => {
    const { code } = link as { code?: unknown }
    return typeof code === 'string' ? [code] : []
  })
  const timeout = timeoutCodes.find((code) => codes.includes(code))
  if (timeout || nameOf(error) === 'TimeoutError') {
    return new UPPError(`The request to ${host} timed out${timeout ? ` (${timeout})` : ''}.`, {
      code: ErrorCode.Timeout,
      ...context,
      cause: error,
    })
  }
  if (nameOf(error) === 'AbortError') {
    return new UPPError(`The request to ${host} was aborted by the fetch in use.`, {
      code: ErrorCode.Cancelled,
      ...context,
      cause: error,
    })
  }
  const [, known, hint] =
    explanations.find(([pattern]) => codes.some((code) => pattern.test(code))) ?? []
  const messages = links.map((link) => (link as { message?: unknown }).message)
  const deepest =
    typeof error === 'string'
      ? error
      : messages.findLast((message) => typeof message === 'string' && message !== '')
  const reasonText = typeof deepest === 'string' ? deepest.replace(/\.$/, '') : ''
  const what = known ?? (reasonText || 'the connection failed')
  return new UPPError(`The request to ${host} failed: ${what}.`, {
    code: ErrorCode.NetworkError,
    ...context,
    cause: error,
    hint,
  })
}

const timeoutCodes = ['UND_ERR_HEADERS_TIMEOUT', 'UND_ERR_BODY_TIMEOUT']

const explanations: readonly (readonly [pattern: RegExp, what: string, hint: string])[] = [
  [
    /^ECONNREFUSED$/,
    'nothing listens there (ECONNREFUSED)',
    'Check baseUrl and that the server runs.',
  ],
  [
    /^(ENOTFOUND|EAI_NODATA|EAI_NONAME)$/,
    'the host name is unknown (ENOTFOUND)',
    'Check baseUrl for a typing error.',
  ],
  [/^EAI_AGAIN$/, 'the name server did not answer (EAI_AGAIN)', 'Check the network.'],
  [
    /^(ECONNRESET|EPIPE|ECONNABORTED|UND_ERR_SOCKET)$/,
    'the connection was closed by the other side (ECONNRESET)',
    'Usually passes; raise the retries if it happens often.',
  ],
  [
    /^(ETIMEDOUT|UND_ERR_CONNECT_TIMEOUT)$/,
    'the connection could not be made in time (ETIMEDOUT)',
    'Check the network; the limit is config.timeouts.connectMs.',
  ],
  [
    /^(EHOSTUNREACH|ENETUNREACH|ENETDOWN)$/,
    'there is no route to the host',
    'Check the network or the proxy settings.',
  ],
  [
    /CERT|^ERR_TLS|SELF_SIGNED|UNABLE_TO_(GET|VERIFY)/,
    'its TLS certificate is not trusted',
    'Add the certificate authority with NODE_EXTRA_CA_CERTS; do not switch the check off.',
  ],
  [/^(EPROTO|ERR_SSL_.*)$/, 'the TLS handshake failed', 'Is the address http rather than https?'],
  [/^HPE_|^UND_ERR_RESPONSE/, 'the answer is not HTTP', 'Is the address https rather than http?'],
]

/** Returns the error and all its causes, the outermost first. */
function chainOf(error: unknown): object[] {
  const links: object[] = []
  const pending = [error]
  while (pending.length > 0 && links.length < 20) {
    const link = pending.shift()
    if (typeof link !== 'object' || link === null || links.includes(link)) continue
    links.push(link)
    const { cause, errors } = link as { cause?: unknown; errors?: unknown }
    pending.push(cause, ...(Array.isArray(errors) ? errors : []))
  }
  return links
}

function nameOf(error: unknown): unknown {
  return typeof error === 'object' && error !== null && 'name' in error ? error.name : undefined
}

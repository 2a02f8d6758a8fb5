import { redactSecrets } from '@skein/base'
import type { ProviderConfig } from './config.ts'

const secretHeader = /auth|key|token|secret|cookie|password/i
const inspectCustom = Symbol.for('nodejs.util.inspect.custom')
const secretsByConfig = new WeakMap<ProviderConfig, readonly string[]>()

/**
 * The config as requests carry it: what the caller gave, unchanged (UPP §2.1), but the key and header
 * values do not show when the request is printed, so that a log of it holds no secret (§17.1).
 */
export function protectConfig(config: ProviderConfig = {}): ProviderConfig {
  if (secretsByConfig.has(config)) return config
  const { apiKey } = config
  const hidden: ProviderConfig = { ...config }
  // Printers that know none of the conventions below show that there is a getter, not what it gives.
  if (apiKey !== undefined)
    Object.defineProperty(hidden, 'apiKey', { get: () => apiKey, enumerable: true })
  const shown = (): object => printable(hidden)
  Object.defineProperties(hidden, { toJSON: { value: shown }, [inspectCustom]: { value: shown } })
  secretsByConfig.set(hidden, secretsOf(config))
  return Object.freeze(hidden)
}

/** A text without the secrets of this config. */
export function redactConfig(text: string, config: ProviderConfig): string {
  return redactSecrets(text, secretsIn(config))
}

/** The secrets of this config, as far as they are known before a request is sent. */
export function secretsIn(config: ProviderConfig): readonly string[] {
  return secretsByConfig.get(config) ?? secretsOf(config)
}

function secretsOf({ apiKey, headers = {} }: ProviderConfig): string[] {
  const secrets = typeof apiKey === 'string' ? [apiKey] : []
  for (const [name, value] of Object.entries(headers))
    if (secretHeader.test(name)) secrets.push(value, value.replace(/^\S+\s+/, ''))
  return secrets
}

function printable({ headers, apiKey, ...rest }: ProviderConfig): object {
  return {
    ...rest,
    ...(apiKey !== undefined && { apiKey: '[hidden]' }),
    ...(headers && {
      headers: Object.fromEntries(Object.keys(headers).map((n) => [n, '[hidden]'])),
    }),
  }
}

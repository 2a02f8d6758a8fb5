import { redactSecrets } from '@skein/base'
import type { ProviderConfig } from '../contract/provider.ts'

/**
 * Checks by a header's name whether its value is a credential. This rule is used for requests,
 * configurations and recordings.
 */
export function isSecretHeader(name: string): boolean {
  return /auth|key|token|secret|cookie|passw|credential|signature/i.test(name)
}

/** Lists the texts to remove from errors: the key, and the values of headers that look like credentials. */
export function secretsOf(
  key: string | undefined,
  headers: NonNullable<ProviderConfig['headers']>,
): readonly string[] {
  const secrets = key === undefined ? [] : [key, key.trim()]
  for (const [name, value] of Object.entries(headers)) {
    // For `Bearer abc` the token alone is added too, because an error may quote it without the scheme.
    if (value === undefined || value === null || !isSecretHeader(name)) continue
    const text = String(value)
    secrets.push(text, ...text.split(/\s+/).slice(1))
  }
  return [...new Set(secrets)]
}

const inspectCustom = Symbol.for('nodejs.util.inspect.custom')
const secretsByConfig = new WeakMap<ProviderConfig, readonly string[]>()

/**
 * Returns the config that requests contain: the caller's values, unchanged (UPP §2.1). The key and the header
 * values are hidden when the request is printed, so that logs contain no secret (UPP §17.1).
 */
export function protectConfig(config: ProviderConfig = {}): ProviderConfig {
  if (secretsByConfig.has(config)) return config
  const { apiKey } = config
  const hidden: ProviderConfig = { ...config }
  // A getter hides the key from printers that ignore the conventions
  // below: they only show that it is a getter.
  if (apiKey !== undefined)
    Object.defineProperty(hidden, 'apiKey', { get: () => apiKey, enumerable: true })
  const printable = (): object => {
    const { headers, apiKey: key, ...rest } = hidden
    return {
      ...rest,
      ...(key !== undefined && { apiKey: '[hidden]' }),
      ...(headers && {
        headers: Object.fromEntries(Object.keys(headers).map((name) => [name, '[hidden]'])),
      }),
    }
  }
  Object.defineProperties(hidden, {
    toJSON: { value: printable },
    [inspectCustom]: { value: printable },
  })
  secretsByConfig.set(hidden, secretsOfConfig(config))
  return Object.freeze(hidden)
}

/** Returns a text with the secrets of this config removed. */
export function redactConfig(text: string, config: ProviderConfig): string {
  return redactSecrets(text, secretsIn(config))
}

/** Returns the secrets of this config that are known before a request is sent. A hook may have removed the config. */
export function secretsIn(config: ProviderConfig = {}): readonly string[] {
  return secretsByConfig.get(config) ?? secretsOfConfig(config)
}
function secretsOfConfig({ apiKey, headers = {} }: ProviderConfig): readonly string[] {
  return secretsOf(typeof apiKey === 'string' ? apiKey : undefined, headers)
}

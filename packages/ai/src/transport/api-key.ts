import type { ProviderConfig } from '../contract/provider.ts'
import { environment } from './env.ts'
import { ErrorCode, isUPPError, UPPError } from '../contract/error.ts'
import type { ErrorContext, VendorEndpoint } from './endpoint.ts'

/** The key of one attempt; undefined when the vendor needs none or a custom header replaces it. */
export function resolveKey(
  endpoint: VendorEndpoint,
  config: ProviderConfig,
  context: ErrorContext,
): string | undefined | Promise<string | undefined> {
  const { apiKey } = config
  if (apiKey === undefined) return keyFromEnvironment(endpoint, config, context)
  if (typeof apiKey === 'string') return checkKey(apiKey, context)
  const ask = typeof apiKey === 'function' ? apiKey : () => apiKey.getKey()
  return askForKey(ask, context)
}

async function askForKey(
  ask: () => string | Promise<string>,
  context: ErrorContext,
): Promise<string> {
  try {
    return checkKey(await ask(), context)
  } catch (error) {
    if (isUPPError(error)) throw error
    throw new UPPError(`The key for ${context.provider} could not be obtained.`, {
      code: ErrorCode.AuthenticationFailed,
      ...context,
      cause: error,
      hint: 'config.apiKey failed; see the cause.',
    })
  }
}

function keyFromEnvironment(
  endpoint: VendorEndpoint,
  config: ProviderConfig,
  context: ErrorContext,
): string | undefined {
  for (const variable of endpoint.keyVariables) {
    const key = environment(variable)
    if (key !== undefined) return key
  }
  if (endpoint.keyVariables.length === 0 || bringsOwnAuth(endpoint, config)) return undefined
  throw new UPPError(`There is no API key for ${context.provider}.`, {
    code: ErrorCode.AuthenticationFailed,
    ...context,
    hint: `Set ${endpoint.keyVariables.join(' or ')}, or pass config.apiKey.`,
  })
}

function bringsOwnAuth(endpoint: VendorEndpoint, config: ProviderConfig): boolean {
  const names = Object.keys(endpoint.authHeaders('key')).map((name) => name.toLowerCase())
  return Object.keys(config.headers ?? {}).some((name) => names.includes(name.toLowerCase()))
}

function checkKey(key: unknown, context: ErrorContext): string {
  if (typeof key === 'string' && key.trim() !== '') return key
  // Its type, never the value: a key of the wrong shape is still a secret.
  const what = key === '' ? 'empty' : typeof key === 'string' ? 'blank' : `a ${typeof key}`
  throw new UPPError(`The API key for ${context.provider} is ${what}.`, {
    code: ErrorCode.AuthenticationFailed,
    ...context,
    hint: 'config.apiKey must be, or give, a non-empty string.',
  })
}

import type {
  BoundLLMModel,
  LLMRequest,
  ProviderConfig,
  RequestScope,
} from '../contract/provider.ts'
import { inOwnNames } from './own-names.ts'
import { protectConfig } from '../transport/config-secrets.ts'

/** The fields of a request that a scope may change. */
type ScopedFields = Pick<LLMRequest, 'params' | 'settings' | 'config' | 'scopes'> & {
  readonly system?: string | undefined
}

/**
 * Returns the request with the scopes that name this model applied. The model of a combination is decided later,
 * so for a combination (it has no `wire`) the scopes stay in the request.
 */
export function applyScopes<R extends ScopedFields>(
  request: R,
  model: Pick<BoundLLMModel, 'provider' | 'wire' | 'writeSettings'>,
): R {
  const { scopes = [] } = request
  const own = scopes.filter((scope) => isFor(scope, model))
  if (own.length === 0) return request
  let { params, system, settings, config } = request
  for (const scope of own) {
    // Without a provider the words are those of a format, and each vendor of it has names of its own.
    const ownParams =
      scope.params && scope.provider === undefined ? inOwnNames(scope.params, model) : scope.params
    params = { ...params, ...ownParams }
    if (scope.system !== undefined) system = scope.system ?? undefined
    if (scope.settings !== undefined) settings = scope.settings ?? undefined
    if (scope.headers)
      config = protectConfig({ ...config, headers: withHeaders(config.headers, scope.headers) })
  }
  const { system: _, settings: __, scopes: ___, ...rest } = request
  const others = scopes.filter((scope) => !own.includes(scope))
  return {
    ...rest,
    params,
    config,
    ...(system !== undefined && { system }),
    ...(settings && { settings }),
    ...(others.length > 0 && { scopes: others }),
  } as R // the fields that were left out are optional
}

/** Adds headers; one of the same name is replaced, in whatever case it was written. */
function withHeaders(
  headers: ProviderConfig['headers'] = {},
  added: Readonly<Record<string, string>>,
): ProviderConfig['headers'] {
  const names = new Set(Object.keys(added).map((name) => name.toLowerCase()))
  const otherHeaders = Object.entries(headers).filter(([name]) => !names.has(name.toLowerCase()))
  return { ...Object.fromEntries(otherHeaders), ...added }
}

function isFor(
  { provider, wire }: RequestScope,
  model: Pick<BoundLLMModel, 'provider' | 'wire'>,
): boolean {
  if (provider === undefined && wire === undefined) return false
  return (
    (provider === undefined || provider === model.provider) &&
    (wire === undefined || wire === model.wire)
  )
}

import { isPlainObject } from '@skein/base'
import type { Message } from '../contract/message.ts'
import type { Middleware } from '../contract/middleware.ts'
import type { BoundLLMModel, Params, RequestScope, Settings } from '../contract/provider.ts'
import type { LLMOptions } from '../llm.ts'
import { applyScopes } from '../routing/scope.ts'

/**
 * Applies scopes to the options of one model. For a combination of models the member that answers decides, so the
 * scopes go with each request, and before all other middleware, which may make them part of a key.
 */
export function withScopes(
  options: LLMOptions,
  scopes: readonly RequestScope[],
  model: BoundLLMModel,
): LLMOptions {
  if (model.wire === undefined) {
    const middleware: Middleware = {
      name: 'scopes',
      onCycle: (request) => ({ ...request, scopes: [...(request.scopes ?? []), ...scopes] }),
    }
    return { ...options, middleware: [middleware, ...(options.middleware ?? [])] }
  }
  const { params = {}, system, config = {} } = options
  const scoped = applyScopes({ params: params as Params, system, config, scopes }, model)
  return { ...options, params: scoped.params, system: scoped.system, config: scoped.config }
}

/** Options with the settings of one call. They override the params of the options, which are defaults. */
export function withCallSettings(
  options: LLMOptions,
  settings: Settings,
  { model, messages }: { readonly model: BoundLLMModel; readonly messages: readonly Message[] },
): { readonly options: LLMOptions; readonly dropped: readonly (keyof Settings)[] } {
  const { params, dropped } = model.writeSettings?.(settings, messages) ?? { dropped: [] }
  if (!params) return { options: { ...options, ...settings }, dropped }
  return { options: { ...options, params: mergeParams(options.params ?? {}, params) }, dropped }
}

/** Chat Completions has two names for the output limit, and OpenAI refuses a request with both. */
const limitNames = ['max_tokens', 'max_completion_tokens']

function mergeParams(defaults: Params, own: Params): Params {
  const options: Record<string, unknown> = { ...defaults, ...own }
  if (limitNames.some((name) => name in own))
    for (const name of limitNames) if (!(name in own)) delete options[name]
  for (const [name, value] of Object.entries(own)) {
    const defaultValue = defaults[name]
    if (isPlainObject(value) && isPlainObject(defaultValue))
      options[name] = { ...defaultValue, ...value }
  }
  return options
}

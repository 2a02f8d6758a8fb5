import { isPlainObject } from '@skein/base'
import type { LLMRequest, Settings } from '../contract/provider.ts'
import type { Warning } from '../contract/turn.ts'
import type { Target, Wire } from './wire.ts'

/**
 * Returns a request whose settings are written as parameters of the vendor format, and a warning for each
 * setting that the format or the model lacks. Parameters that the caller gave take precedence, also inside of
 * objects such as `generationConfig`.
 */
export function withSettings(
  request: LLMRequest,
  wire: Wire,
  target: Target,
): { readonly request: LLMRequest; readonly warnings: readonly Warning[] } {
  const { settings } = request
  if (!settings) return { request, warnings: [] }
  const {
    params,
    dropped,
    notes = [],
  } = wire.writeSettings?.(settings, target, request.params, request.messages) ?? {
    params: {},
    dropped: Object.keys(settings) as (keyof Settings)[],
  }
  const allParams: Record<string, unknown> = { ...params, ...request.params }
  // Chat Completions has two names for the output limit, and OpenAI refuses a request with both.
  if (limitNames.some((name) => name in request.params))
    for (const name of limitNames) if (!(name in request.params)) delete allParams[name]
  for (const [name, own] of Object.entries(params)) {
    const callerValue = request.params[name]
    if (isPlainObject(own) && isPlainObject(callerValue))
      allParams[name] = { ...own, ...callerValue }
  }
  return {
    request: { ...request, params: allParams },
    warnings: [
      ...dropped
        .filter((name) => !notes.some(({ setting }) => setting === name))
        .map((name) => ({
          code: 'setting_dropped',
          message: `${target.provider} has no ${name} ${JSON.stringify(settings[name as keyof Settings])}; it was not sent.`,
          pointer: `/settings/${name}`,
        })),
      ...notes.map(({ setting, change, reason }) => ({
        code: change === 'dropped' ? 'setting_dropped' : 'setting_adjusted',
        message: `${setting} ${JSON.stringify(settings[setting as keyof Settings])}: ${reason}`,
        pointer: `/settings/${setting}`,
      })),
    ],
  }
}

const limitNames = ['max_tokens', 'max_completion_tokens'] as const

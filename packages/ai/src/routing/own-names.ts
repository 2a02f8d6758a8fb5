import type { BoundLLMModel, Params, Settings } from '../contract/provider.ts'

/** The names of OpenAI's that other vendors of Chat Completions lack, with a setting that each vendor has a name for. */
const renamed: readonly (readonly [name: string, setting: (value: unknown) => Settings])[] = [
  ['max_completion_tokens', () => ({ maxOutputTokens: 1 })],
  ['seed', () => ({ seed: 1 })],
  ['reasoning_effort', (effort) => ({ reasoning: effort === 'none' ? 'off' : 'high' })],
]

/**
 * Writes what a client of Chat Completions sent for a vendor of that format that has other names for it: Mistral refuses
 * `max_completion_tokens`, and others take no notice of it. What has the vendor's own name already stays as it is, and
 * so does what the vendor has no name for.
 */
export function inOwnNames(
  params: Params,
  model: Pick<BoundLLMModel, 'wire' | 'writeSettings'>,
): Params {
  if (model.wire !== 'openai-chat') return params
  let own: Record<string, unknown> | undefined
  for (const [name, settingOf] of renamed) {
    const value = params[name]
    if (value === undefined) continue
    const ownParams = model.writeSettings?.(settingOf(value)).params ?? {}
    const [ownName] = Object.keys(ownParams)
    if (ownName === undefined || name in ownParams) continue
    own ??= { ...params }
    delete own[name]
    // A level of thinking has a value of the vendor's own; the others keep the client's.
    if (!(ownName in params))
      own[ownName] = name === 'reasoning_effort' ? ownParams[ownName] : value
  }
  return own ?? params
}

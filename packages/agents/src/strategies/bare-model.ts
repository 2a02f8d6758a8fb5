import type { LLMInstance, LLMOptions } from '@skein/ai'

/** The model without tools and structure, or with others. An opaque one stays as it is. */
export function bareModel(
  llm: LLMInstance,
  changes: Pick<LLMOptions, 'tools' | 'structure'> = {},
): LLMInstance {
  if (typeof llm.with !== 'function') return llm
  // `structure: undefined` takes the agent's away; the option's type has no word for that.
  return llm.with({ tools: [], structure: undefined, ...changes } as Partial<LLMOptions>)
}

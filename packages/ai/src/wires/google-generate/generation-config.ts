import type { Params } from '../../contract/provider.ts'

/**
 * Parameters that the API keeps in `generationConfig`; callers may write them there or beside it.
 * All other parameters, known to us or not, stay at the top of the body as they are, so that both
 * places can be reached. (From the public types of November 2026.)
 */
const generationFields = new Set([
  'audioTimestamp',
  'audioTranscriptionConfig',
  'candidateCount',
  'enableAffectiveDialog',
  'enableEnhancedCivicAnswers',
  'frequencyPenalty',
  'imageConfig',
  'logprobs',
  'maxOutputTokens',
  'mediaResolution',
  'modelSelectionConfig',
  'presencePenalty',
  'responseFormat',
  'responseJsonSchema',
  'responseLogprobs',
  'responseMimeType',
  'responseModalities',
  'responseSchema',
  'routingConfig',
  'seed',
  'speechConfig',
  'stopSequences',
  'temperature',
  'thinkingConfig',
  'topK',
  'topP',
  'translationConfig',
])

/** Parameters that stand at the top of the body. */
export function topLevel(params: Params): Record<string, unknown> {
  return Object.fromEntries(Object.entries(params).filter(([key]) => !generationFields.has(key)))
}

/** The caller's `generationConfig` passes unchanged; loose fields fill its gaps. */
export function generationConfigOf(params: Params): object | undefined {
  const loose = Object.entries(params).filter(([key]) => generationFields.has(key))
  const given = params['generationConfig'] as object | undefined
  return loose.length === 0 ? given : { ...Object.fromEntries(loose), ...given }
}

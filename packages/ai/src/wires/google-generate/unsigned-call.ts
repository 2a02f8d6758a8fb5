/**
 * Returns the signature that Google documents for calls made by another model. Models before Gemini 3
 * neither need nor accept it. An alias (`gemini-flash-latest`) names a current model; the first models
 * had no number at all (`gemini-pro`, `gemini-pro-vision`).
 */
export function unsignedCall(modelId: string): string | undefined {
  const name = modelId.slice(modelId.lastIndexOf('/') + 1)
  if (!name.startsWith('gemini-')) return undefined
  if (/^gemini-(?:[12](?:[.-]|$)|(?:pro|pro-vision|ultra)$)/.test(name)) return undefined
  return 'skip_thought_signature_validator'
}

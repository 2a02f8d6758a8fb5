import type { ModelReference } from '@skein/ai'
import { scripted, type ScriptFunction } from '@skein/ai/testing'
import { defineModel, type ModelDefinition } from '@skein/runtime'

/**
 * The real model of the first vendor whose key is in the environment; without one, a script. The script costs nothing,
 * but has the prices of a small model, so that the demo shows what a run would cost.
 */
export function exampleModel(
  name: string,
  script: ScriptFunction,
): ModelReference | ModelDefinition {
  return real ?? defineModel({ name, model: scripted(script), inputPrice: 1, outputPrice: 5 })
}

const real = await findReal()

async function findReal(): Promise<ModelReference | undefined> {
  const { ANTHROPIC_API_KEY, OPENAI_API_KEY, GOOGLE_API_KEY } = process.env
  if (ANTHROPIC_API_KEY) {
    const { anthropic } = await import('@skein/ai/anthropic')
    return anthropic('claude-sonnet-4-5')
  }
  if (OPENAI_API_KEY) {
    const { openai } = await import('@skein/ai/openai')
    return openai('gpt-5-mini')
  }
  if (GOOGLE_API_KEY) {
    const { google } = await import('@skein/ai/google')
    return google('gemini-2.5-flash')
  }
  return undefined
}

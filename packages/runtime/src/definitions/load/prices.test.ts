import { modelCatalog } from '@skein/ai/catalog'
import { openai } from '@skein/ai/openai'
import { scripted } from '@skein/ai/testing'
import { describe, expect, test } from 'vitest'
import { defineAgent } from '../define-agent.ts'
import { defineModel, definePrompt } from '../define.ts'
import { DefinitionError } from '../definition-error.ts'
import type { PriceSource } from './prices.ts'
import { createRegistry } from './registry.ts'

const gpt5 = modelCatalog['openai/gpt-5']!.prices!
const own = { input: 1, output: 2 }

function priceOf(
  model: Parameters<typeof definePrompt>[0]['model'],
  prices?: PriceSource,
  budget?: { readonly maxCostUsd: number },
): unknown {
  const prompt = definePrompt({ name: 'main', prompt: 'Hi.', model })
  const registry = createRegistry({
    agents: [defineAgent({ name: 'one', sideA: { prompt }, budget })],
    prices,
  })
  return registry.agents.get('one')!.a.prompt.models[0]!.price
}

describe('the price of a model', () => {
  test('is the published one, also by a name with a version, so that a budget holds without more', () => {
    expect(priceOf(openai('gpt-5'))).toEqual(gpt5)
    expect(priceOf(openai('gpt-5-2025-08-07'), undefined, { maxCostUsd: 1 })).toEqual(gpt5)
  })

  test('is the one that `prices` has; other models keep theirs', () => {
    const table = { 'openai/gpt-5': { prices: own } }
    expect(priceOf(openai('gpt-5'), table)).toEqual(own)
    expect(priceOf(openai('gpt-5-mini'), table)).toEqual(modelCatalog['openai/gpt-5-mini']!.prices)
    expect(priceOf(openai('gpt-5'), () => own)).toEqual(own)
    expect(priceOf(openai('gpt-5'), () => undefined)).toEqual(gpt5)
  })

  test('is the one that the definition states before all others', () => {
    const stated = defineModel({ name: 'm', model: openai('gpt-5'), inputPrice: 3, outputPrice: 4 })
    expect(priceOf(stated, () => own)).toEqual({ input: 3, output: 4 })
  })

  test('is not known if nobody says it, or null says so', () => {
    expect(priceOf(scripted([]))).toBeUndefined()
    expect(priceOf(openai('gpt-5'), { 'openai/gpt-5': { prices: null } })).toBeUndefined()
    expect(priceOf(openai('gpt-5'), () => null)).toBeUndefined()
    expect(() => priceOf(openai('gpt-5'), () => null, { maxCostUsd: 1 })).toThrow(DefinitionError)
  })
})

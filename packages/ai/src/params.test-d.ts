import { describe, expectTypeOf, test } from 'vitest'
import {
  createProvider,
  type ModelReference,
  type Params,
  type Provider,
} from './contract/provider.ts'
import { llm, type LLMInstance, type LLMOptions } from './llm.ts'
import { fallback } from './routing/fallback.ts'
import { scripted } from './testing/index.ts'
import { anthropic } from './vendors/anthropic.ts'
import { google } from './vendors/google.ts'
import { groq } from './vendors/groq.ts'
import { openai } from './vendors/openai.ts'
import { openaiCompatible } from './vendors/openai-compatible.ts'

const isLong = Math.random() > 0.5

describe('params', () => {
  test('have the names that the vendor documents', () => {
    llm({ model: openai('gpt-5'), params: { store: false, reasoning: { effort: 'high' } } })
    llm({ model: anthropic('claude-opus-5'), params: { thinking: { type: 'adaptive' } } })
    llm({ model: google('gemini-2.5-pro'), params: { topK: 3, generationConfig: { seed: 1 } } })
    type Names = keyof NonNullable<ReturnType<typeof anthropic>['~params']>
    expectTypeOf<'thinking' | 'mcp_servers'>().toExtend<Names>()
  })

  test('with a misspelled name or value do not compile', () => {
    // @ts-expect-error the name is reasoning
    llm({ model: openai('gpt-5'), params: { reasonning: { effort: 'high' } } })
    // @ts-expect-error the name is reasoning_effort
    llm({ model: groq('m'), params: { temperature: 0, reasonning_effort: 'low' } })
    // @ts-expect-error the name is effort
    llm({ model: openai('gpt-5'), params: { reasoning: { efort: 'high' } } })
    // @ts-expect-error Responses has max_output_tokens
    llm({ model: openai('gpt-5'), params: { max_tokens: 5 } })
    // @ts-expect-error the value is high
    llm({ model: anthropic('m'), params: { output_config: { effort: 'hihg' } } })
    // @ts-expect-error the options of a vendor are not those of another
    llm({ model: anthropic('m'), params: { reasoning: { effort: 'high' } } })
  })

  test('follow the API that is chosen', () => {
    llm({ model: openai('gpt-5', { api: 'chat' }), params: { reasoning_effort: 'low' } })
    // @ts-expect-error Responses has reasoning
    llm({ model: openai('gpt-5', {}), params: { reasoning_effort: 'low' } })
    // @ts-expect-error there is no such API
    openai('gpt-5', { api: 'completions' })
    // @ts-expect-error Anthropic has one API
    anthropic('m', { api: 'chat' })
  })

  test('that the types do not know are declared as Params', () => {
    const params: Params = { brand_new: true }
    llm({ model: openai('gpt-6'), params })
    llm({ model: isLong ? openai('gpt-6') : anthropic('m'), params })
    llm({ model: openai('gpt-6') }).with({ params })
  })

  test('may be anything for a model whose vendor is not known', () => {
    const model: ModelReference = openai('gpt-5')
    llm({ model, params: { anything: 1 } })
    llm({ model: scripted([]), params: { anything: 1 } })
    llm({ model: fallback([openai('a'), anthropic('b')]), params: { anything: 1 } })
    const local = openaiCompatible({ name: 'local', baseUrl: 'http://127.0.0.1/v1' })
    llm({ model: local('m'), params: { repetition_penalty: 1.1 } })
  })

  test('of a choice between two vendors may be those of either', () => {
    const model = isLong ? openai('gpt-5') : anthropic('claude-opus-5')
    llm({ model, params: { truncation: 'auto' } })
    llm({ model, params: { speed: 'fast' } })
    // @ts-expect-error neither has it
    llm({ model, params: { speeed: 'fast' } })
  })

  test('are checked in with() as well, against the model from before or the new one', () => {
    const base = llm({ model: openai('gpt-5') })
    base.with({ params: { store: true } })
    // @ts-expect-error the name is store
    base.with({ params: { storre: true } })
    base.with({ model: anthropic('m'), params: { speed: 'fast' } })
    // @ts-expect-error Anthropic stores nothing
    base.with({ model: anthropic('m'), params: { store: true } })
  })
})

test('model ids: known ones complete, any string is accepted', () => {
  expectTypeOf<'gpt-5'>().toExtend<Parameters<typeof openai>[0]>()
  const id: string = 'ft:gpt-5:mine'
  expectTypeOf(openai(id)).toExtend<ModelReference>()
  // @ts-expect-error an id is text
  openai(5)
})

test('a model of any vendor is a ModelReference, alone and in lists', () => {
  const models: readonly ModelReference[] = [openai('a'), anthropic('b'), scripted([])]
  const options: LLMOptions = { model: openai('a'), params: { anything: 1 } }
  const instance: LLMInstance = llm({ model: openai('a'), params: { store: true } })
  expectTypeOf(models[0]!).toEqualTypeOf<ModelReference>()
  void [options, instance]
})

test('every provider is a Provider; one of unknown options is called with an id only', () => {
  const providers: readonly Provider[] = [openai, anthropic, createProvider({ name: 'mine' })]
  expectTypeOf(providers[0]!('m')).toEqualTypeOf<ModelReference>()
  // @ts-expect-error nobody knows its options
  providers[0]!('m', { api: 'chat' })
  createProvider({ name: 'mine' })('m', { region: 'eu' })
})

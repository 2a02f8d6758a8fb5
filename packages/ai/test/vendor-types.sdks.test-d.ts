import type Anthropic from '@anthropic-ai/sdk'
import type { GenerateContentConfig, GenerationConfig, Tool as GoogleTool } from '@google/genai'
import type { ChatRequest } from 'ollama'
import type OpenAI from 'openai'
import { describe, expectTypeOf, test } from 'vitest'
import { anthropic } from '@skein/ai/anthropic'
import { azureOpenai } from '@skein/ai/azure-openai'
import { google } from '@skein/ai/google'
import { ollama } from '@skein/ai/ollama'
import { openai } from '@skein/ai/openai'
import { anthropicTools, googleTools, openaiTools } from '@skein/ai/server-tools'
import type {
  Compared,
  Difference,
  KnownIds,
  KnownParams,
  Literals,
  None,
  Plain,
} from './vendor-types.ts'

// Our names against those of the vendors' SDKs, at the versions that package.json pins. Groq, Mistral and
// OpenRouter are compared in vendor-types.sdks.test.ts, because their SDKs are installed only for tests.

describe('known parameters are those of the SDK', () => {
  test('OpenAI Responses', () => {
    const model = openai('m')
    type Sdk = OpenAI.Responses.ResponseCreateParamsNonStreaming
    expectTypeOf<
      Difference<KnownParams<typeof model>, Sdk, 'model' | 'input' | 'stream'>
    >().toEqualTypeOf<None>()
    const azure = azureOpenai('m')
    expectTypeOf(azure).toEqualTypeOf(model)
  })

  test('OpenAI Chat Completions', () => {
    const model = openai('m', { api: 'chat' })
    type Sdk = OpenAI.Chat.ChatCompletionCreateParamsNonStreaming
    expectTypeOf<
      Difference<KnownParams<typeof model>, Sdk, 'model' | 'messages' | 'stream'>
    >().toEqualTypeOf<None>()
  })

  test('Anthropic, with those of beta features and those that only older models accept', () => {
    const model = anthropic('m')
    type SentAsHeaders = 'betas' | 'user_profile_id' | 'workspace_id'
    type Sdk = Omit<Anthropic.Beta.Messages.MessageCreateParamsNonStreaming, SentAsHeaders> & {
      temperature?: number
      top_k?: number
      top_p?: number
    }
    expectTypeOf<
      Difference<KnownParams<typeof model>, Sdk, 'model' | 'messages' | 'stream'>
    >().toEqualTypeOf<None>()
    expectTypeOf<
      Difference<
        KnownParams<typeof model>,
        Anthropic.MessageCreateParamsNonStreaming,
        'model' | 'messages' | 'stream' | SentAsHeaders
      >['missing']
    >().toBeNever()
  })

  test('Google, whose SDK moves the names of generationConfig beside the others', () => {
    const model = google('m')
    type Sdk = Omit<GenerateContentConfig, keyof GenerationConfig> &
      GenerationConfig & { generationConfig?: GenerationConfig }
    /** Of the SDK itself, or of Vertex only. */
    type NotSent =
      | 'httpOptions'
      | 'abortSignal'
      | 'automaticFunctionCalling'
      | 'automaticContinuation'
      | 'continuationToken'
      | 'generationOutputConfig'
      | 'modelArmorConfig'
    expectTypeOf<Difference<KnownParams<typeof model>, Sdk, NotSent>>().toEqualTypeOf<None>()
  })

  test('Ollama', () => {
    const model = ollama('m')
    type Owned = 'model' | 'messages' | 'stream'
    expectTypeOf<Difference<KnownParams<typeof model>, ChatRequest, Owned>>().toEqualTypeOf<None>()
    type Options = NonNullable<KnownParams<typeof model>['options']>
    type SdkOptions = NonNullable<ChatRequest['options']>
    expectTypeOf<Difference<Options, SdkOptions>>().toEqualTypeOf<None>()
  })

  test('a misspelled name and a wrong value would be noticed', () => {
    type Ours = { readonly storre?: boolean; readonly truncation?: 'autoo' }
    type Found = Difference<Ours, { store?: boolean; truncation?: 'auto' | null }>
    expectTypeOf<Found['missing']>().toEqualTypeOf<'store'>()
    expectTypeOf<Found['unknown']>().toEqualTypeOf<'storre'>()
    expectTypeOf<Found['wrong']>().toEqualTypeOf<'truncation'>()
  })
})

test('known model ids are those of the SDK', () => {
  expectTypeOf<Exclude<KnownIds<typeof openai>, Literals<OpenAI.ResponsesModel>>>().toBeNever()
  expectTypeOf<KnownIds<typeof openai>>().not.toBeNever()
  expectTypeOf<Exclude<KnownIds<typeof anthropic>, Literals<Anthropic.Model>>>().toBeNever()
  expectTypeOf<KnownIds<typeof anthropic>>().not.toBeNever()
})

/** What a helper returns, as the SDK would take it. */
type Made<Helper extends (...given: never[]) => unknown> = Compared<ReturnType<Helper>>
/** Names of a helper's result that the SDK's tool of the same type has not. */
type Unknown<Helper extends (...given: never[]) => unknown, Sdk> = Exclude<
  keyof ReturnType<Helper>,
  keyof Extract<Sdk, { type?: ReturnType<Helper> extends { type: infer Type } ? Type : never }>
>

describe('server tools are those of the SDK', () => {
  test('OpenAI', () => {
    type Sdk = OpenAI.Responses.Tool
    type Tools = typeof openaiTools
    expectTypeOf<{ [Name in keyof Tools]: Made<Tools[Name]> }>().toExtend<
      Record<keyof Tools, Sdk>
    >()
    expectTypeOf<{ [Name in keyof Tools]: Unknown<Tools[Name], Sdk> }[keyof Tools]>().toBeNever()
  })

  test('Anthropic, those of beta features included', () => {
    type Sdk = Anthropic.Beta.Messages.BetaToolUnion
    type Tools = typeof anthropicTools
    expectTypeOf<{ [Name in keyof Tools]: Made<Tools[Name]> }>().toExtend<
      Record<keyof Tools, Sdk>
    >()
    expectTypeOf<{ [Name in keyof Tools]: Unknown<Tools[Name], Sdk> }[keyof Tools]>().toBeNever()
    type Plainly = Pick<Tools, 'webSearch' | 'webFetch' | 'codeExecution'>
    expectTypeOf<{ [Name in keyof Plainly]: Made<Plainly[Name]> }>().toExtend<
      Record<keyof Plainly, Anthropic.ToolUnion>
    >()
  })

  test('Google', () => {
    type Tools = typeof googleTools
    type Fields = { [Name in keyof Tools]: ReturnType<Tools[Name]> }[keyof Tools]
    type Merged = {
      [Key in Fields extends infer One ? keyof One : never]: Extract<
        Fields,
        Record<Key, unknown>
      >[Key]
    }
    expectTypeOf<Difference<Merged, GoogleTool>['unknown']>().toBeNever()
    expectTypeOf<Difference<Merged, GoogleTool>['wrong']>().toBeNever()
    type Nested = {
      [Key in keyof Merged]: Exclude<KeysOf<Merged[Key]>, KeysOf<Plain<GoogleTool[Key]>>>
    }
    expectTypeOf<Nested[keyof Nested]>().toBeNever()
  })

  type KeysOf<Value> = Value extends readonly (infer Item)[] ? keyof Item : keyof NonNullable<Value>
})

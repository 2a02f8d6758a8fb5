import type { JsonObject } from '@skein/base'
import { describe, expect, test } from 'vitest'
import {
  AssistantMessage,
  Audio,
  type DocumentBlock,
  type History,
  Image,
  type InferenceInput,
  llm,
  type LLMOptions,
  ToolResultMessage,
  UserMessage,
  Video,
} from '../src/index.ts'
import { anthropic } from '../src/vendors/anthropic.ts'
import { azureOpenai } from '../src/vendors/azure-openai.ts'
import { cerebras } from '../src/vendors/cerebras.ts'
import { deepseek } from '../src/vendors/deepseek.ts'
import { google } from '../src/vendors/google.ts'
import { groq } from '../src/vendors/groq.ts'
import { mistral } from '../src/vendors/mistral.ts'
import { moonshot } from '../src/vendors/moonshot.ts'
import { ollama } from '../src/vendors/ollama.ts'
import { openai } from '../src/vendors/openai.ts'
import { openrouter } from '../src/vendors/openrouter.ts'
import { xai } from '../src/vendors/xai.ts'

type Given = [input: History | InferenceInput, ...more: InferenceInput[]]

/** The address and body that a call sends; the vendor then answers 400. */
async function sent(
  options: LLMOptions,
  ...given: Given
): Promise<{ readonly url: string; readonly body: JsonObject }> {
  let seen: { url: string; body: JsonObject } | undefined
  const fetch = async (url: string, init: RequestInit): Promise<Response> => {
    seen = { url, body: JSON.parse(init.body as string) as JsonObject }
    return new Response('{}', { status: 400 })
  }
  const model = llm({ ...options, config: { apiKey: 'k', fetch, ...options.config } })
  await expect(model.generate(...(given as [History]))).rejects.toThrow()
  return seen!
}

const wav = new TextEncoder().encode('RIFF\0\0\0\0WAVEfmt ')
const mp4 = Uint8Array.from([0, 0, 0, 24, ...new TextEncoder().encode('ftypisom')])

describe('Mistral', () => {
  test('gets audio as one base64 text', async () => {
    const { body } = await sent({ model: mistral('voxtral-small-latest') }, Audio.fromBytes(wav))
    expect(body['messages']).toEqual([
      {
        role: 'user',
        content: [{ type: 'input_audio', input_audio: Buffer.from(wav).toString('base64') }],
      },
    ])
  })
})

describe('Gemini', () => {
  const foreign = [
    new UserMessage('weather?'),
    new AssistantMessage('', [{ toolCallId: 'c1', toolName: 'weather', arguments: {} }]),
    new ToolResultMessage([{ toolCallId: 'c1', result: 'sun' }]),
  ]

  test.each([
    ['gemini-3-pro-preview', true],
    ['gemini-flash-latest', true],
    ['gemini-pro-latest', true],
    ['models/gemini-flash-lite-latest', true],
    ['gemini-robotics-er', true],
    ['gemini-10-pro', true],
    ['gemini-2.5-pro', false],
    ['models/gemini-2.0-flash', false],
    ['gemini-2', false],
    ['gemini-1.5-pro', false],
    ['gemini-pro', false],
    ['gemini-pro-vision', false],
    ['gemma-3-27b-it', false],
    ['tunedModels/mine', false],
  ])('%s: a call of another model carries the stand-in signature: %s', async (name, signed) => {
    const { body } = await sent({ model: google(name) }, foreign)
    const contents = body['contents'] as { parts: JsonObject[] }[]
    const call = contents[1]?.parts.find((part) => 'functionCall' in part)
    expect(call?.['thoughtSignature']).toBe(signed ? 'skip_thought_signature_validator' : undefined)
  })
})

describe('OpenRouter through Responses', () => {
  test('gets audio and video as its own parts', async () => {
    const model = openrouter('google/gemini-3-pro', { api: 'responses' })
    const { body } = await sent({ model }, Audio.fromBytes(wav), Video.fromBytes(mp4))
    expect((body['input'] as JsonObject[])[0]?.['content']).toEqual([
      {
        type: 'input_audio',
        input_audio: { data: Buffer.from(wav).toString('base64'), format: 'wav' },
      },
      {
        type: 'input_video',
        video_url: `data:video/mp4;base64,${Buffer.from(mp4).toString('base64')}`,
      },
    ])
    const { capabilities } = llm({ model })
    expect(capabilities).toMatchObject({ audioInput: true, videoInput: true })
  })

  test('OpenAI itself takes neither there', async () => {
    const model = llm({ model: openai('gpt-5'), config: { apiKey: 'k' } })
    await expect(model.generate(Audio.fromBytes(wav))).rejects.toMatchObject({
      code: 'INVALID_REQUEST',
    })
  })
})

describe('Anthropic: max_tokens', () => {
  const maxTokens = async (modelId: string, params = {}): Promise<unknown> =>
    (await sent({ model: anthropic(modelId), params }, 'hi')).body['max_tokens']

  test.each([
    ['claude-opus-5-5', 128_000],
    ['claude-sonnet-4-6', 128_000],
    ['claude-sonnet-4-5', 64_000],
    ['claude-sonnet-4-5-20250929', 64_000],
    ['claude-opus-4-5', 64_000],
    ['claude-haiku-4-5-20251001', 64_000],
    ['claude-opus-4-1-20250805', 32_000],
    ['claude-sonnet-4-20250514', 64_000],
    ['claude-opus-4-20250514', 32_000],
    ['claude-3-7-sonnet-latest', 64_000],
    ['claude-3-5-haiku-20241022', 8192],
    ['claude-3-haiku-20240307', 4096],
    ['some-model-of-a-proxy', 4096],
  ])('%s: the output limit of the model, %i', async (name, limit) => {
    expect(await maxTokens(name)).toBe(limit)
  })

  test('is above a thinking budget', async () => {
    const thinking = { type: 'enabled', budget_tokens: 10_000 }
    expect(await maxTokens('some-model', { thinking })).toBe(14_096)
    expect(await maxTokens('claude-sonnet-4-5', { thinking })).toBe(64_000)
    expect(await maxTokens('some-model', { thinking: { type: 'enabled' } })).toBe(4096)
  })

  test('one that the caller gave is never changed', async () => {
    const thinking = { type: 'enabled', budget_tokens: 10_000 }
    expect(await maxTokens('claude-sonnet-4-5', { max_tokens: 5, thinking })).toBe(5)
  })
})

describe('a history with tool calls, and no tools', () => {
  const history = [
    new UserMessage('weather?'),
    new AssistantMessage('', [{ toolCallId: 'abcdefghi', toolName: 'weather', arguments: {} }]),
    new ToolResultMessage([{ toolCallId: 'abcdefghi', toolName: 'weather', result: 'sun' }]),
  ]

  // None of these is documented to refuse such a history today, so no tools are named for it.
  test.each([
    anthropic('claude-opus-4-5'),
    openai('gpt-5'),
    openai('gpt-5', { api: 'chat' }),
    azureOpenai('d'),
    mistral('m'),
    google('gemini-3-pro'),
    ollama('m'),
    openrouter('x/y'),
    groq('m'),
    xai('m'),
    deepseek('m'),
    cerebras('m'),
    moonshot('m'),
  ])('$provider.name: is sent with its calls and results, and with no tools', async (model) => {
    const { body } = await sent({ model }, history, 'thanks')
    expect(body).not.toHaveProperty('tools')
    expect(JSON.stringify(body)).toContain('weather')
    expect(JSON.stringify(body)).toContain('sun')
  })
})

describe('a file that was uploaded before is named in the metadata of its block', () => {
  const document = (metadata: DocumentBlock['metadata']): DocumentBlock => ({
    type: 'document',
    source: { type: 'base64', data: 'JVBERg==' },
    mimeType: 'application/pdf',
    metadata,
  })

  test('Anthropic: its source replaces ours', async () => {
    const source = { type: 'file', file_id: 'file_1' }
    const { body } = await sent({ model: anthropic('m') }, document({ anthropic: { source } }))
    expect(body['messages']).toEqual([{ role: 'user', content: [{ type: 'document', source }] }])
  })

  test('OpenAI Responses: its id, and our data taken out', async () => {
    const openaiFile = { file_id: 'file_1', file_data: undefined, filename: undefined }
    const block = document({ openai: openaiFile as unknown as JsonObject })
    const { body } = await sent({ model: openai('gpt-5') }, block)
    expect((body['input'] as JsonObject[])[0]?.['content']).toEqual([
      { type: 'input_file', file_id: 'file_1' },
    ])
  })

  test('OpenAI Chat Completions: its file replaces ours', async () => {
    const block = document({ openai: { file: { file_id: 'file_1' } } })
    const { body } = await sent({ model: openai('gpt-5', { api: 'chat' }) }, block)
    expect((body['messages'] as JsonObject[])[0]?.['content']).toEqual([
      { type: 'file', file: { file_id: 'file_1' } },
    ])
  })

  test('another vendor does not see it', async () => {
    const block = document({ anthropic: { source: { type: 'file', file_id: 'file_1' } } })
    const { body } = await sent({ model: openai('gpt-5') }, block)
    expect(JSON.stringify(body)).not.toContain('file_1')
  })
})

describe('Moonshot', () => {
  test('a limit of the output is max_completion_tokens; max_tokens in params is sent as it is', async () => {
    const model = moonshot('kimi-k3')
    const { body } = await sent({ model, maxOutputTokens: 5 }, 'hi')
    expect(body).toMatchObject({ max_completion_tokens: 5 })
    expect(body).not.toHaveProperty('max_tokens')
    expect((await sent({ model, params: { max_tokens: 7 } }, 'hi')).body).toMatchObject({
      max_tokens: 7,
    })
  })
})

describe('model names', () => {
  test.each(['../../evil?x=', 'models/../../x', '..', './x', 'a//b'])(
    'Google refuses %j, which would leave its path',
    async (name) => {
      const seen: string[] = []
      const fetch = async (url: string): Promise<Response> => {
        seen.push(url)
        return new Response('{}', { status: 400 })
      }
      const model = llm({ model: google(name), config: { apiKey: 'k', fetch } })
      await expect(model.generate('hi')).rejects.toMatchObject({
        code: 'INVALID_REQUEST',
        message: expect.stringContaining('path'),
      })
      expect(seen).toEqual([])
    },
  )

  test.each(['gemini-3-pro', 'models/gemini-3-pro', 'tunedModels/mine-1', 'a..b'])(
    'Google accepts %j',
    async (name) => {
      const { url } = await sent({ model: google(name) }, 'hi')
      expect(url).toContain(`${name}:generateContent`)
    },
  )
})

test('Cerebras is given images as image_url', async () => {
  const { body } = await sent({ model: cerebras('m') }, Image.fromUrl('https://a.example/b.png'))
  expect(JSON.stringify(body)).toContain('"image_url":{"url":"https://a.example/b.png"}')
})

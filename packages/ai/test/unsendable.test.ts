/** Blocks that one vendor cannot be sent although it takes the kind: by address, by id, of an unknown type. */
import {
  AssistantMessage,
  Document,
  Image,
  llm,
  type Message,
  type ModelReference,
  NoRetry,
  ToolResultMessage,
  type UserContent,
  UserMessage,
} from '@skein/ai'
import { anthropic } from '@skein/ai/anthropic'
import { azureOpenai } from '@skein/ai/azure-openai'
import { cerebras } from '@skein/ai/cerebras'
import { deepseek } from '@skein/ai/deepseek'
import { google } from '@skein/ai/google'
import { groq } from '@skein/ai/groq'
import { mistral } from '@skein/ai/mistral'
import { moonshot } from '@skein/ai/moonshot'
import { ollama } from '@skein/ai/ollama'
import { openai } from '@skein/ai/openai'
import { openrouter } from '@skein/ai/openrouter'
import { fallback, rateLimit, RateLimiter, route } from '@skein/ai/routing'
import { xai } from '@skein/ai/xai'
import { describe, expect, test } from 'vitest'

const models: Readonly<Record<string, ModelReference>> = {
  anthropic: anthropic('claude-sonnet-4-5'),
  'openai responses': openai('gpt-5'),
  'openai chat': openai('gpt-4o', { api: 'chat' }),
  'azure-openai': azureOpenai('gpt-4o'),
  google: google('gemini-2.5-flash'),
  mistral: mistral('mistral-medium-3-5'),
  ollama: ollama('llava'),
  groq: groq('llama'),
  deepseek: deepseek('deepseek-chat'),
  xai: xai('grok-4'),
  cerebras: cerebras('llama'),
  moonshot: moonshot('kimi-k2'),
  'openrouter chat': openrouter('x/y'),
  'openrouter responses': openrouter('x/y', { api: 'responses' }),
}

const bytes = new Uint8Array([1, 2, 3])
const blocks: Readonly<Record<string, UserContent>> = {
  binary: { type: 'binary', data: bytes, mimeType: 'application/zip' },
  'a document of another vendor': Document.fromUpload({ provider: 'acme', fileId: 'f1' }),
  'a picture of another vendor': Image.fromUpload({ provider: 'acme', fileId: 'f1' }),
  'a document by address': { type: 'document', source: { type: 'url', url: 'https://a.test/a.pdf' }, mimeType: 'application/pdf' }, // prettier-ignore
  'a picture by address': { type: 'image', source: { type: 'url', url: 'https://a.test/a.png' }, mimeType: 'image/png' }, // prettier-ignore
  'a Word document': { type: 'document', source: { type: 'base64', data: 'UEsDBA==' }, mimeType: 'application/msword' }, // prettier-ignore
  'a TIFF': { type: 'image', source: { type: 'base64', data: 'SUkqAA==' }, mimeType: 'image/tiff' },
  'an OGG recording': { type: 'audio', data: bytes, mimeType: 'audio/ogg' },
  'a film': { type: 'video', data: bytes, mimeType: 'video/mp4' },
}

/** Runs one request against a vendor that records the body and refuses to answer. */
async function bodyOf(model: ModelReference, history: readonly Message[], input?: UserContent) {
  let body: string | undefined
  const fetch = async (_: string, init: RequestInit): Promise<Response> => {
    body = await new Response(init.body).text()
    return new Response('{}', { status: 400 })
  }
  const config = { apiKey: 'k', baseUrl: 'https://v.test/v1', fetch, retryStrategy: new NoRetry() }
  const given = input ? [new UserMessage([input])] : ['And now?']
  const error: unknown = await llm({ model, config })
    .generate(history, ...given)
    .catch((thrown: unknown) => thrown)
  return { body, error }
}

const cells = Object.keys(models).flatMap((model) => Object.keys(blocks).map((block) => ({ model, block }))) // prettier-ignore

describe.each(cells)('$block, $model', ({ model, block }) => {
  test('in the history it never keeps the conversation from going on', async () => {
    const history = [
      new UserMessage([{ type: 'text', text: 'Look.' }, blocks[block]!]),
      new AssistantMessage('Seen.'),
    ]
    const { body } = await bodyOf(models[model]!, history)
    expect(body).toContain('And now?')
  })

  test('in the result of a tool it never keeps the conversation from going on', async () => {
    const history = [
      new UserMessage('Look.'),
      new AssistantMessage([], [{ toolCallId: 'c1', toolName: 'look', arguments: {} }]),
      new ToolResultMessage([{ toolCallId: 'c1', toolName: 'look', result: [blocks[block]!] }]),
      new AssistantMessage('Seen.'),
    ]
    const { body } = await bodyOf(models[model]!, history)
    expect(body).toContain('And now?')
  })

  test('a block is refused in the input exactly if the history shows a placeholder for it', async () => {
    const history = [new UserMessage([blocks[block]!]), new AssistantMessage('Seen.')]
    const { body } = await bodyOf(models[model]!, history)
    const asInput = await bodyOf(models[model]!, [], blocks[block])
    expect(asInput.body === undefined).toBe(body!.includes(': not shown]'))
    if (asInput.body === undefined) expect(asInput.error).toMatchObject({ code: 'INVALID_REQUEST' })
  })
})

// What the vendors' references say: which cells must be placeholders.
test.each([
  ['anthropic', 'a TIFF'],
  ['anthropic', 'a Word document'],
  ['openai chat', 'an OGG recording'],
  ['openai chat', 'a document by address'],
  ['azure-openai', 'an OGG recording'],
  ['ollama', 'a picture by address'],
  ['google', 'a document of another vendor'],
])('%s is not sent %s', async (model, block) => {
  const history = [new UserMessage([blocks[block]!]), new AssistantMessage('Seen.')]
  expect((await bodyOf(models[model]!, history)).body).toContain(': not shown]')
})

test('a file that was uploaded to this vendor is sent by its id in the result of a tool, too', async () => {
  const own = Document.fromUpload({ provider: 'google', fileId: 'files/abc' })
  const history = [
    new UserMessage('Look.'),
    new AssistantMessage([], [{ toolCallId: 'c1', toolName: 'look', arguments: {} }]),
    new ToolResultMessage([{ toolCallId: 'c1', toolName: 'look', result: own }]),
  ]
  expect((await bodyOf(models['google']!, history)).body).toContain('v1beta/files/abc')
})

describe('a combination asks the member that can', () => {
  const answer = { output: [{ type: 'message', id: 'm', role: 'assistant', content: [{ type: 'output_text', text: 'ok', annotations: [] }] }], status: 'completed', id: 'r' } // prettier-ignore
  const asked: string[] = []
  const member = (model: ModelReference) => ({
    model,
    config: {
      apiKey: 'k',
      retryStrategy: new NoRetry(),
      fetch: async () => {
        asked.push(model.provider.name)
        return Response.json(answer)
      },
    },
  })
  const file = Document.fromUpload({ provider: 'openai', fileId: 'file-1' })
  const order = [member(anthropic('claude-sonnet-4-5')), member(google('gemini-2.5-pro'))]
  const last = member(openai('gpt-5'))

  test.each([
    ['a fallback', fallback([...order, last])],
    ['a route', route([...order, last])],
    ['members with a rate', fallback([...order, last].map((one) => ({ ...one, model: rateLimit(one.model, { limiter: new RateLimiter({ requests: 9 }) }) })))], // prettier-ignore
    ['nested fallbacks', fallback([fallback(order), { model: fallback([last]) }])],
  ])('%s, for a file that only its last member has', async (_, model) => {
    asked.length = 0
    const turn = await llm({ model }).generate(file, 'What is it?')
    expect(turn.response.text).toBe('ok')
    expect(asked).toEqual(['openai'])
  })

  test('if none can, the first reason is the error', async () => {
    await expect(llm({ model: fallback(order) }).generate(file, 'Well?')).rejects.toMatchObject({
      code: 'INVALID_REQUEST',
      message: expect.stringContaining('was uploaded to openai; anthropic does not have it'),
    })
  })
})

/** Files that were uploaded to a vendor, by id. */
import {
  Document,
  Image,
  llm,
  messageFromJSON,
  messageToJSON,
  NoRetry,
  UserMessage,
} from '@skein/ai'
import { anthropic } from '@skein/ai/anthropic'
import { google } from '@skein/ai/google'
import { mistral } from '@skein/ai/mistral'
import { openai } from '@skein/ai/openai'
import { says, vendorServer } from '@skein/ai/testing'
import type { JsonObject } from '@skein/base'
import { describe, expect, test } from 'vitest'
import { vendors } from './testing/vendors.ts'

const of = (provider: string, fileId = 'file_1') => ({
  document: Document.fromUpload({ provider, fileId }, { title: 'Report' }),
  image: Image.fromUpload({ provider, fileId }),
})

function instance(model: Parameters<typeof llm>[0]['model'], prefix = '/v1') {
  const server = vendorServer([says('Hi')])
  const config = {
    fetch: server.fetch,
    baseUrl: `http://vendor.test${prefix}`,
    apiKey: 'k',
    retryStrategy: new NoRetry(),
  }
  return { server, bot: llm({ model, config }) }
}

const parts = (body: JsonObject): unknown => {
  const list = (body['messages'] ?? body['input'] ?? body['contents']) as JsonObject[]
  return list[0]!['content'] ?? list[0]!['parts']
}

test.each([
  [
    'anthropic',
    anthropic('claude-x'),
    '/v1',
    'file_1',
    [
      { type: 'document', source: { type: 'file', file_id: 'file_1' }, title: 'Report' },
      { type: 'image', source: { type: 'file', file_id: 'file_1' } },
    ],
  ],
  [
    'openai',
    openai('gpt-5'),
    '/v1',
    'file_1',
    [
      { type: 'input_file', file_id: 'file_1' },
      { type: 'input_image', file_id: 'file_1' },
    ],
  ],
  [
    'google',
    google('gemini-3-pro'),
    '/v1beta',
    'files/a',
    [
      {
        fileData: {
          mimeType: 'application/pdf',
          fileUri: 'https://generativelanguage.googleapis.com/v1beta/files/a',
        },
      },
      {
        fileData: {
          mimeType: 'image/*',
          fileUri: 'https://generativelanguage.googleapis.com/v1beta/files/a',
        },
      },
    ],
  ],
] as const)('%s: in the form of the vendor', async (provider, model, prefix, fileId, expected) => {
  const { server, bot } = instance(model, prefix)
  const { document, image } = of(provider, fileId)
  await bot.generate(document, image)
  expect(parts(server.requests[0]!.body)).toEqual(expected)
})

test.each([
  ['openai', openai('gpt-4o', { api: 'chat' }), [{ type: 'file', file: { file_id: 'file_1' } }]],
  ['mistral', mistral('mistral-large'), [{ type: 'file', file_id: 'file_1' }]],
] as const)('%s, Chat Completions: documents', async (provider, model, expected) => {
  let body: JsonObject = {}
  const fetch = async (_: string, init: RequestInit): Promise<Response> => {
    body = JSON.parse(init.body as string) as JsonObject
    return Response.json({ choices: [{ message: { content: 'Hi' }, finish_reason: 'stop' }] })
  }
  await llm({ model, config: { fetch, apiKey: 'k' } }).generate(of(provider).document)
  expect(parts(body)).toEqual(expected)
})

describe.each(vendors)('$name', ({ model, prefix }) => {
  test('a file of another vendor is refused before anything is sent, and the error says what to do', async () => {
    const { server, bot } = instance(model, prefix)
    const error = (await bot
      .generate('see', of('elsewhere').image)
      .catch((e: unknown) => e)) as Error & { hint: string }
    if (model.provider.handlers.llm!.capabilities.imageInput) {
      expect(error).toMatchObject({
        code: 'INVALID_REQUEST',
        message: expect.stringContaining('elsewhere'),
      })
      expect(error.hint).toMatch(/Upload it/)
    }
    expect(server.requests).toHaveLength(0)
  })
})

test('the block survives JSON, and a source of the kind of a vendor gets a hint', async () => {
  const message = new UserMessage([of('anthropic').document.toBlock()])
  expect(messageFromJSON(JSON.parse(JSON.stringify(messageToJSON(message))))).toEqual(message)
  const block = {
    type: 'document',
    source: { type: 'file', file_id: 'file_1' },
    mimeType: 'application/pdf',
  }
  const error = (await instance(anthropic('claude-x'))
    .bot.generate(block as never)
    .catch((e: unknown) => e)) as Error & { hint: string }
  expect(error.hint).toContain('fromUpload')
  expect(() => Document.fromUpload({ provider: '', fileId: 'x' })).toThrow(/provider/)
})

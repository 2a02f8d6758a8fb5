import { describe, expect, test } from 'vitest'
import { llm } from '../llm.ts'
import type { ModelReference } from '../contract/provider.ts'
import { NoRetry } from '../transport/retry.ts'
import azureOpenai, { azureOpenaiResource } from './azure-openai.ts'
import openai from './openai.ts'
import openaiCompatible from './openai-compatible.ts'
import xai from './xai.ts'

/** Where a model's request goes, and with which headers. */
async function sentTo(model: ModelReference): Promise<{ url: string; headers: Headers }> {
  let sent = { url: '', headers: new Headers() }
  const fetch = async (url: string, init: RequestInit): Promise<Response> => {
    sent = { url, headers: new Headers(init.headers) }
    return Response.json({ error: { message: 'no' } }, { status: 400 })
  }
  const config = { fetch, apiKey: 'key', retryStrategy: new NoRetry() }
  await llm({ model, config })
    .generate('x')
    .catch(() => undefined)
  return sent
}

describe('the API of a model', () => {
  test.each([
    [openai('m'), 'https://api.openai.com/v1/responses'],
    [openai('m', { api: 'chat' }), 'https://api.openai.com/v1/chat/completions'],
    [xai('m'), 'https://api.x.ai/v1/chat/completions'],
    [xai('m', { api: 'responses' }), 'https://api.x.ai/v1/responses'],
    [azureOpenaiResource('res')('d'), 'https://res.openai.azure.com/openai/v1/responses'],
    [
      azureOpenai('d', { api: 'chat' }),
      'https://config-base-url-is-not-set.invalid/openai/v1/chat/completions',
    ],
  ])('%o', async (model, url) => {
    expect((await sentTo(model)).url).toBe(url)
  })

  test('another one is refused', () => {
    // @ts-expect-error the APIs are chat and responses
    expect(() => llm({ model: openai('m', { api: 'telegraph' }) })).toThrow(
      expect.objectContaining({ code: 'INVALID_REQUEST', provider: 'openai' }),
    )
  })
})

test('Azure takes its key in a header of its own', async () => {
  const { headers } = await sentTo(azureOpenaiResource('res')('d'))
  expect(headers.get('api-key')).toBe('key')
  expect(headers.has('authorization')).toBe(false)
})

test('a resource name cannot change the host', () => {
  expect(azureOpenaiResource('a.test/x?')('d').modelId).toBe('d')
  return expect(sentTo(azureOpenaiResource('evil.test/')('d'))).resolves.not.toMatchObject({
    url: expect.stringMatching(/^https:\/\/evil\.test\//),
  })
})

describe('openaiCompatible', () => {
  test('names, headers and limits of its own', async () => {
    const local = openaiCompatible({
      name: 'local',
      baseUrl: 'http://127.0.0.1:9/v1/',
      headers: { 'x-team': 'a' },
      dialect: { media: ['image'] },
      capabilities: { structuredOutput: false },
    })
    const { url, headers } = await sentTo(local('m'))
    expect(url).toBe('http://127.0.0.1:9/v1/chat/completions')
    expect(headers.get('x-team')).toBe('a')
    expect(llm({ model: local('m') }).capabilities).toMatchObject({
      structuredOutput: false,
      imageInput: true,
      audioInput: false,
    })
  })
})

import { embedding, NoRetry, type EmbeddingInput, type Params } from '@skein/ai'
import { encodeBase64, type JsonObject } from '@skein/base'
import { describe, expect, test } from 'vitest'
import { hello, stub, vectorOf, type Answer } from './support/stub.ts'
import { embeddingVendors, vendors } from './support/vendors.ts'

const apiKey = 'key-0123456789'
const providers = new Map(vendors.map(({ name, provider }) => [name, provider]))

function rig(vendor: string, answer: Answer = hello, params: Params = {}) {
  const { fetch, seen } = stub(answer)
  const config = { apiKey, fetch, retryStrategy: new NoRetry() }
  const model = embedding({ model: providers.get(vendor)!('m'), config, params })
  return { model, bodies: () => seen.map(({ body }) => JSON.parse(body) as JsonObject) }
}

const inputs: EmbeddingInput[] = ['a', { type: 'text', text: 'b' }, { type: 'text', text: '' }]
const input = ['a', 'b', '']
const params = { dimensions: 5, x_other: [null] }
const task = { document: 'RETRIEVAL_DOCUMENT', query: 'RETRIEVAL_QUERY' }

/** The whole body of each vendor that has a form of its own; all others have OpenAI's. */
const bodies: Record<string, (type?: 'document' | 'query') => JsonObject> = {
  openrouter: (type) => ({
    model: 'm',
    input,
    ...(type && { input_type: `search_${type}` }),
    ...params,
  }),
  google: (type) => ({
    requests: input.map((text) => ({
      model: 'models/m',
      content: { parts: [{ text }] },
      ...(type && { taskType: task[type] }),
      ...params,
    })),
  }),
}

describe.each(embeddingVendors)('$name', ({ name }) => {
  test.each([undefined, 'document', 'query'] as const)(
    'UPP-128 UPP-129 UPP-149 the whole body, with the input type %s',
    async (inputType) => {
      const { model, bodies: sent } = rig(name, hello, params)
      await model.embed(inputs, inputType ? { inputType } : {})
      const expected = bodies[name] ?? (() => ({ model: 'm', input, ...params }))
      expect(sent()).toEqual([expected(inputType)])
    },
  )

  test.each([false, true])(
    'UPP-130 UPP-132 batches that answer out of order are joined in order; chunked %s',
    async (chunked) => {
      let second = (): void => {}
      const answered = new Promise<void>((resolve) => (second = resolve))
      const { model } = rig(name, async (seen, count) => {
        if (count > 1) second()
        else {
          await answered
          await new Promise((resolve) => setTimeout(resolve, 5)) // until the others have been read
        }
        return hello(seen)
      })
      const texts = ['a', 'bb', 'ccc', 'dddd', 'eeeee']
      const options = { batchSize: 2, concurrency: 3 }
      const result = chunked
        ? await model.embed(texts, { ...options, chunked }).result
        : await model.embed(texts, options)
      expect(result.embeddings.map(({ vector, index }) => [index, vector])).toEqual(
        texts.map((text, index) => [index, vectorOf(text)]),
      )
    },
  )
})

/** How many inputs of a thousand tokens each, and of three thousand, one request takes. */
test.each([
  ['mistral', 17, 3000, [16, 1]],
  ['mistral', 10, 9000, [5, 5]],
  ['openai', 17, 3000, [17]],
  ['openai', 101, 9000, [100, 1]],
] as const)(
  'UPP-129 UPP-149 %s: %i inputs of %i characters stay within the tokens of a request',
  async (name, count, length, sizes) => {
    const text = 'x'.repeat(length)
    for (const one of [text, { type: 'text', text } as const]) {
      const { model, bodies: sent } = rig(name)
      await model.embed(Array.from({ length: count }, () => one))
      expect(sent().map((body) => (body['input'] as unknown[]).length)).toEqual(sizes)
    }
  },
)

const usages: [string, JsonObject, number][] = [
  ['openai', { usage: { prompt_tokens: 3, total_tokens: 5 } }, 5],
  ['openai', { usage: { prompt_tokens: 3 } }, 3],
  ['openai', {}, 0],
  ['google', { usageMetadata: { promptTokenCount: 3, totalTokenCount: 5 } }, 5],
  ['google', { usageMetadata: { promptTokenCount: 3 } }, 3],
  ['google', {}, 0],
  ['ollama', { prompt_eval_count: 5 }, 5],
  ['ollama', {}, 0],
]
test.each(usages)('UPP-130 UPP-149 the usage of %s %j is %i', async (name, usage, totalTokens) => {
  const body = {
    data: [{ index: 0, embedding: [1] }],
    embeddings: name === 'google' ? [{ values: [1] }] : [[1]],
    ...usage,
  }
  const { model } = rig(name, () => Response.json(body))
  expect((await model.embed('a')).usage).toEqual({ totalTokens })
})

test.each([1, 2, 3, 5, 6, 7])('UPP-131 base64 of %i bytes is no vector', async (length) => {
  const embedded = encodeBase64(new Uint8Array(length))
  const { model } = rig('openai', () =>
    Response.json({ data: [{ index: 0, embedding: embedded }] }),
  )
  await expect(model.embed('a')).rejects.toMatchObject({
    code: 'INVALID_RESPONSE',
    modality: 'embedding',
  })
})

test.each([-1, -2, 1.5, 2, 1e9])(
  'UPP-130 the index %d of two vectors is no place',
  async (index) => {
    const data = [
      { index: 0, embedding: [1] },
      { index, embedding: [1] },
    ]
    const { model } = rig('openai', () => Response.json({ data }))
    await expect(model.embed(['a', 'b'])).rejects.toMatchObject({ code: 'INVALID_RESPONSE' })
  },
)

import {
  embedding,
  Image,
  NoRetry,
  UPPError,
  type EmbeddingInstance,
  type EmbeddingProgress,
  type EmbeddingRequest,
  type EmbeddingResult,
  type Middleware,
  type Params,
} from '@skein/ai'
import { encodeBase64 } from '@skein/base'
import { describe, expect, test } from 'vitest'
import { png, stub, vectorOf, hello, type Answer, type Seen, type Stub } from './support/stub.ts'
import { embeddingVendors, vendors } from './support/vendors.ts'

const apiKey = 'sk-test-0123456789'
const providers = new Map(vendors.map(({ name, provider }) => [name, provider]))

interface Rig extends Stub {
  readonly model: EmbeddingInstance
}

function rig(
  vendor: string,
  answer: Answer = hello,
  params: Params = {},
  middleware: Middleware[] = [],
): Rig {
  const stubbed = stub(answer)
  const config = { apiKey, fetch: stubbed.fetch, retryStrategy: new NoRetry() }
  const model = embedding({ model: providers.get(vendor)!('m'), config, params, middleware })
  return { ...stubbed, model }
}

const texts = (count: number): string[] =>
  Array.from({ length: count }, (_, i) => 'x'.repeat(i + 1))

describe.each(embeddingVendors)('$name', ({ name, provider }) => {
  test('UPP-128 UPP-149 embeds one text', async () => {
    const { model, seen } = rig(name)
    const result = await model.embed('Hello')
    expect(result.embeddings).toMatchObject([{ vector: [5, 2.5], dimensions: 2, index: 0 }])
    expect(seen).toHaveLength(1)
    expect([model.model.modelId, model.model.provider]).toEqual(['m', provider.name])
  })

  test('UPP-128 the model, the params of the instance and those of the call go out', async () => {
    const { fetch, seen } = stub()
    const params = { x_instance: 1, x_both: 1 }
    const model = embedding({ model: provider('some-model-7'), config: { apiKey, fetch }, params })
    await model.embed('Hello', { params: { x_both: 2, x_call: [null] } })
    const [{ url, body }] = seen as [Seen]
    expect(`${url} ${body}`).toContain('some-model-7')
    expect(body).toContain('"x_instance":1,"x_both":2,"x_call":[null]')
  })

  test('UPP-129 strings and text blocks, one or many', async () => {
    const { model } = rig(name)
    const { embeddings } = await model.embed(['a', { type: 'text', text: 'bb' }, 'ccc'])
    expect(embeddings.map(({ vector }) => vector)).toEqual(['a', 'bb', 'ccc'].map(vectorOf))
    const one = await model.embed({ type: 'text', text: 'dddd' })
    expect(one.embeddings[0]!.vector).toEqual(vectorOf('dddd'))
  })

  test('UPP-129 an image, where the vendor takes one; else INVALID_REQUEST before any request', async () => {
    const { model, seen } = rig(name)
    const running = model.embed(['text', Image.fromBase64(png, 'image/png')])
    if (provider.handlers.embedding!.imageInput) {
      expect((await running).embeddings).toHaveLength(2)
      expect(seen[0]!.body).toContain(png)
    } else {
      await expect(running).rejects.toMatchObject({
        code: 'INVALID_REQUEST',
        modality: 'embedding',
      })
      expect(seen).toEqual([])
    }
  })

  test('UPP-130 UPP-131 input order, usage, and a dimension count that is true', async () => {
    const { model } = rig(name)
    const inputs = texts(20)
    const { embeddings, usage } = await model.embed(inputs)
    expect(embeddings.map(({ index }) => index)).toEqual(inputs.map((_, index) => index))
    expect(embeddings.map(({ vector }) => vector)).toEqual(inputs.map(vectorOf))
    expect(embeddings.every(({ dimensions, vector }) => dimensions === vector.length)).toBe(true)
    expect(usage).toEqual({ totalTokens: 20 })
  })

  test('UPP-130 inputs over the vendor’s limit go out in several requests, in order', async () => {
    const { maxBatchSize } = provider.handlers.embedding!
    const { model, seen } = rig(name)
    const inputs = Array.from({ length: maxBatchSize * 2 + 1 }, (_, i) => 'y'.repeat((i % 9) + 1))
    const { embeddings, usage } = await model.embed(inputs)
    expect(seen).toHaveLength(3)
    expect(embeddings.map(({ index }) => index)).toEqual(inputs.map((_, index) => index))
    expect(embeddings.map(({ vector }) => vector)).toEqual(inputs.map(vectorOf))
    expect(usage.totalTokens).toBe(inputs.length)
  })

  test('UPP-132 chunks come with progress and in order; the last is 100 %', async () => {
    const { model, seen } = rig(name)
    const inputs = texts(1050)
    const steps: EmbeddingProgress[] = []
    const stream = model.embed(inputs, { chunked: true, batchSize: 100 })
    for await (const progress of stream) steps.push(progress)
    expect(steps).toHaveLength(11)
    expect(seen.length).toBeGreaterThanOrEqual(11)
    expect(steps.map(({ embeddings }) => embeddings.length)).toEqual([...Array(10).fill(100), 50])
    expect(steps.flatMap(({ embeddings }) => embeddings.map(({ index }) => index))).toEqual(
      inputs.map((_, index) => index),
    )
    expect(steps.map(({ completed }) => completed)).toEqual(
      [...Array(10).keys()].map((step) => (step + 1) * 100).concat(1050),
    )
    expect(steps[0]!.percent).toBeCloseTo(9.52, 1)
    expect(steps.at(-1)!.percent).toBe(100)
    const { embeddings, usage } = await stream.result
    expect(embeddings.map(({ vector }) => vector)).toEqual(inputs.map(vectorOf))
    expect(usage.totalTokens).toBe(1050)
  })

  test('UPP-133 UPP-149 what else the response says is kept under the provider’s name', async () => {
    const { model } = rig(name, async (seen) => {
      const body = (await hello(seen).json()) as Record<string, unknown>
      const list = (body['data'] ?? body['embeddings']) as unknown[]
      const first = list[0]
      if (!Array.isArray(first)) Object.assign(first as object, { x_extra: 'per vector' })
      return Response.json({ ...body, x_future: { a: 1 } })
    })
    const { metadata, embeddings } = await model.embed('Hello')
    expect(metadata).toMatchObject({ [provider.name]: { x_future: { a: 1 } } })
    // Ollama's vectors are bare lists: there is nothing to keep.
    const expected = name === 'ollama' ? undefined : { [provider.name]: { x_extra: 'per vector' } }
    expect(embeddings[0]!.metadata).toEqual(expected)
  })

  test('UPP-133 UPP-149 a wrong number of vectors, a double index and a bad vector are errors', async () => {
    const spoil: ((list: unknown[]) => unknown[])[] = [
      (list) => list.slice(1),
      (list) => [...list, list[0]],
      (list) =>
        list.map((item) =>
          Array.isArray(item) ? ['a'] : { ...(item as object), embedding: ['a'], values: ['a'] },
        ),
      (list) =>
        list.map((item) =>
          Array.isArray(item) ? [] : { ...(item as object), embedding: [], values: [] },
        ),
    ]
    if (!/google|ollama/.test(name)) {
      spoil.push((list) => list.map((item) => ({ ...(item as object), index: 0 })))
    }
    for (const change of spoil) {
      const { model } = rig(name, async (seen) => {
        const body = (await hello(seen).json()) as Record<string, unknown[]>
        const field = body['data'] ? 'data' : 'embeddings'
        return Response.json({ ...body, [field]: change(body[field]!) })
      })
      const running = model.embed(['a', 'b'])
      await expect(running, String(change)).rejects.toMatchObject({ code: 'INVALID_RESPONSE' })
    }
  })

  test('UPP-149 params reach the body unchanged', async () => {
    const params = { dimensions: 256, x_unknown: [1, { a: null }] }
    const { model, seen } = rig(name, hello, params)
    await model.embed('Hello')
    expect(seen[0]!.body).toContain('"dimensions":256,"x_unknown":[1,{"a":null}]')
  })
})

describe('vectors', () => {
  test('UPP-131 base64 is decoded', async () => {
    const floats = new Float32Array([0.5, -2, 1024.25])
    const base64 = encodeBase64(new Uint8Array(floats.buffer))
    const { model, seen } = rig(
      'openai',
      () => Response.json({ data: [{ index: 0, embedding: base64 }], usage: { total_tokens: 1 } }),
      { encoding_format: 'base64' },
    )
    const { embeddings } = await model.embed('Hello')
    expect(embeddings).toMatchObject([{ vector: [0.5, -2, 1024.25], dimensions: 3 }])
    expect(seen[0]!.body).toContain('"encoding_format":"base64"')
  })

  test('UPP-131 base64 that is none, or not whole floats, is an error', async () => {
    for (const embedding of ['!!', encodeBase64(new Uint8Array(3))]) {
      const { model } = rig('openai', () => Response.json({ data: [{ index: 0, embedding }] }))
      await expect(model.embed('Hello')).rejects.toMatchObject({ code: 'INVALID_RESPONSE' })
    }
  })
})

describe('inputs', () => {
  test('UPP-129 none at all needs no request', async () => {
    const { model, seen } = rig('openai')
    expect(await model.embed([])).toEqual({ embeddings: [], usage: { totalTokens: 0 } })
    expect(seen).toEqual([])
  })

  test.each([[7], [null], [{ type: 'audio' }], [{ type: 'text' }]])(
    'UPP-129 %j is refused by its place',
    async (input) => {
      const { model, seen } = rig('openai')
      await expect(model.embed(['ok', input as unknown as string])).rejects.toMatchObject({
        code: 'INVALID_REQUEST',
        modality: 'embedding',
        message: expect.stringContaining('Input 1'),
      })
      expect(seen).toEqual([])
    },
  )

  test('UPP-129 the caller’s list may change afterwards', async () => {
    const { model } = rig('openai')
    const inputs = ['a', 'bb']
    const running = model.embed(inputs)
    inputs.length = 0
    expect((await running).embeddings).toHaveLength(2)
  })

  test.each([
    ['google', 'query', '"taskType":"RETRIEVAL_QUERY"'],
    ['google', 'document', '"taskType":"RETRIEVAL_DOCUMENT"'],
    ['openrouter', 'query', '"input_type":"search_query"'],
  ] as const)('UPP-128 %s: inputType %s', async (vendor, inputType, expected) => {
    const { model, seen } = rig(vendor)
    await model.embed('Hello', { inputType })
    expect(seen[0]!.body).toContain(expected)
    const own = rig(vendor, hello, { taskType: 'CLUSTERING', input_type: 'classification' })
    await own.model.embed('Hello', { inputType })
    expect(own.seen[0]!.body).not.toContain(expected)
  })

  test('UPP-130 a request stays below the tokens the vendor takes', async () => {
    const { model, seen } = rig('openai')
    await model.embed(Array.from({ length: 10 }, () => 'word '.repeat(50_000)))
    expect(seen.length).toBeGreaterThan(1)
    for (const { body } of seen) expect(body.length).toBeLessThan(900_000 + 1000)
  })
})

describe('batches', () => {
  test('UPP-132 run at the same time, as many as asked for', async () => {
    for (const concurrency of [1, 3]) {
      let running = 0
      let most = 0
      const { model } = rig('openai', async (seen) => {
        most = Math.max(most, ++running)
        await new Promise((resolve) => setTimeout(resolve, 5))
        running -= 1
        return hello(seen)
      })
      await model.embed(texts(10), { batchSize: 1, concurrency })
      expect(most).toBe(concurrency)
    }
  })

  test('UPP-130 are retried one by one', async () => {
    const failed = new Set<string>()
    const { fetch, seen } = stub((one) => {
      if (failed.has(one.body)) return hello(one)
      failed.add(one.body)
      return new Response('{}', { status: 503 })
    })
    const config = { apiKey, fetch, retryStrategy: { onRetry: () => 0 } }
    const model = embedding({ model: providers.get('openai')!('m'), config })
    const { embeddings } = await model.embed(texts(6), { batchSize: 2 })
    expect(embeddings.map(({ vector }) => vector)).toEqual(texts(6).map(vectorOf))
    expect(seen).toHaveLength(6)
  })

  test('UPP-132 one that fails ends the others', async () => {
    const signals: AbortSignal[] = []
    const { model } = rig('openai', async (seen, count) => {
      if (count === 1) return new Response('{}', { status: 400 })
      signals.push(seen.signal!)
      return new Promise(() => {})
    })
    await expect(model.embed(texts(8), { batchSize: 2 })).rejects.toMatchObject({
      code: 'INVALID_REQUEST',
      statusCode: 400,
    })
    expect(signals).toHaveLength(3)
    expect(signals.every(({ aborted }) => aborted)).toBe(true)
  })

  test.each([
    ['batchSize', 0],
    ['batchSize', 1.5],
    ['concurrency', -1],
    ['concurrency', '2'],
  ])('UPP-132 %s: %s is refused with value and type', async (option, value) => {
    const { model } = rig('openai')
    await expect(model.embed('a', { [option]: value })).rejects.toMatchObject({
      code: 'INVALID_REQUEST',
      message: expect.stringMatching(new RegExp(`${option} is .*${value}.*${typeof value}`)),
    })
  })

  test('UPP-132 abort ends the chunks with CANCELLED, also the result', async () => {
    const { model } = rig('openai', async (seen, count) =>
      count > 4 ? new Promise(() => {}) : hello(seen),
    )
    const stream = model.embed(texts(20), { chunked: true, batchSize: 2 })
    let chunks = 0
    const reading = (async () => {
      for await (const _ of stream) if (++chunks === 2) setTimeout(() => stream.abort(), 5)
    })()
    await expect(reading).rejects.toMatchObject({ code: 'CANCELLED' })
    await expect(stream.result).rejects.toMatchObject({ code: 'CANCELLED', modality: 'embedding' })
    expect(chunks).toBeGreaterThanOrEqual(2)
  })

  test('UPP-132 leaving the loop ends the requests; the result then is CANCELLED', async () => {
    const { model, seen } = rig('openai')
    const stream = model.embed(texts(100), { chunked: true, batchSize: 1 })
    for await (const _ of stream) break
    expect(seen.length).toBeLessThan(10)
    await expect(stream.result).rejects.toMatchObject({ code: 'CANCELLED' })
  })

  test('UPP-132 the result alone runs it to the end; it is read once', async () => {
    const { model } = rig('openai')
    const stream = model.embed(texts(10), { chunked: true, batchSize: 3 })
    expect((await stream.result).embeddings).toHaveLength(10)
    let chunks = 0
    for await (const _ of stream) chunks += 1
    expect(chunks).toBe(4)
    expect(() => stream[Symbol.asyncIterator]()).toThrow(UPPError)
  })

  test('UPP-132 a signal of the caller ends it', async () => {
    const controller = new AbortController()
    const { model } = rig('openai', () => new Promise(() => {}))
    setTimeout(() => controller.abort(), 5)
    await expect(model.embed('a', { signal: controller.signal })).rejects.toMatchObject({
      code: 'CANCELLED',
    })
  })

  test('UPP-132 a chunk larger than the vendor takes is still one chunk', async () => {
    const { model, seen } = rig('google')
    const steps: number[] = []
    const stream = model.embed(texts(600), { chunked: true, batchSize: 250 })
    for await (const { embeddings } of stream) steps.push(embeddings.length)
    expect(steps).toEqual([250, 250, 100])
    expect(seen).toHaveLength(3 + 3 + 1)
  })

  test('UPP-133 what each response said is kept when there are several', async () => {
    const { model } = rig('openai')
    const { metadata } = await model.embed(texts(4), { batchSize: 2 })
    expect(metadata).toMatchObject({
      openai: { model: 'm', responses: [{ model: 'm' }, { model: 'm' }] },
    })
  })
})

describe('support and hooks', () => {
  test('UPP-040 UPP-041 a provider without embeddings is refused immediately', () => {
    const make = (): unknown => embedding({ model: providers.get('anthropic')!('m') })
    expect(make).toThrow(
      expect.objectContaining({
        code: 'INVALID_REQUEST',
        modality: 'embedding',
        provider: 'anthropic',
      }),
    )
  })

  test('UPP-105 hooks run once per call and may change the request', async () => {
    const log: string[] = []
    const watch: Middleware = {
      name: 'watch',
      onStart: ({ modality, streaming }) => void log.push(`start ${modality} ${streaming}`),
      onRequest: (context) => {
        const request = context.request as EmbeddingRequest
        context.request = { ...request, inputs: [...request.inputs, 'added'] }
      },
      onResponse: ({ response }) =>
        void log.push(`response ${(response as EmbeddingResult).embeddings.length}`),
      onEnd: ({ endTime }) => void log.push(`end ${typeof endTime}`),
      onError: (error) => void log.push(`error ${(error as UPPError).code}`),
    }
    const { model } = rig('openai', hello, {}, [watch])
    await model.embed(texts(5), { batchSize: 2 })
    for await (const _ of model.embed('a', { chunked: true }));
    const failing = rig('openai', () => new Response('{}', { status: 400 }), {}, [watch])
    await failing.model.embed('a').catch(() => {})
    expect(log).toEqual([
      'start embedding false',
      'response 6',
      'end number',
      'start embedding true',
      'response 2',
      'end number',
      'start embedding false',
      'error INVALID_REQUEST',
    ])
  })
})

test.each([
  ['fewer vectors than inputs', { data: [{ index: 0, embedding: [1] }], usage: {} }],
  [
    'an index twice',
    {
      data: [
        { index: 0, embedding: [1] },
        { index: 0, embedding: [1] },
      ],
    },
  ],
  [
    'an index outside',
    {
      data: [
        { index: 0, embedding: [1] },
        { index: 2, embedding: [1] },
      ],
    },
  ],
  ['a vector without numbers', { data: [{ index: 0, embedding: [1] }, { index: 1, embedding: [] }] }], // prettier-ignore
  ['no object', []],
])('UPP-034 UPP-036 %s is INVALID_RESPONSE, with provider and modality', async (_, body) => {
  const provider = vendors.find(({ name }) => name === 'openai')!.provider
  const fetch = async (): Promise<Response> => Response.json(body)
  const config = { apiKey: 'k', fetch, retryStrategy: new NoRetry() }
  const failed = embedding({ model: provider('m'), config }).embed(['a', 'b'])
  await expect(failed).rejects.toMatchObject({
    name: 'UPPError',
    code: 'INVALID_RESPONSE',
    provider: 'openai',
    modality: 'embedding',
  })
})

test('UPP-034 a request that cannot be written names provider and modality, too', async () => {
  const params: Record<string, unknown> = {}
  params['self'] = params
  for (const { name, provider } of embeddingVendors) {
    const fetch = async (): Promise<Response> => Response.json({})
    const failed = embedding({
      model: provider('m'),
      params,
      config: { apiKey: 'k', fetch },
    }).embed('a')
    await expect(failed, name).rejects.toMatchObject({
      name: 'UPPError',
      code: 'INVALID_REQUEST',
      provider: provider.name,
      modality: 'embedding',
    })
  }
})

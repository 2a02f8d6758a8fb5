import {
  image,
  Image,
  NoRetry,
  UPPError,
  type ImageInstance,
  type ImageRequest,
  type ImageStreamEvent,
  type Middleware,
  type Params,
} from '@skein/ai'
import { decodeBase64 } from '@skein/base'
import { describe, expect, test } from 'vitest'
import { hello, png, stub, type Answer, type Stub } from './support/stub.ts'
import { imageVendors, vendors } from './support/vendors.ts'

const apiKey = 'sk-test-0123456789'
const providers = new Map(vendors.map(({ name, provider }) => [name, provider]))
const bytes = decodeBase64(png)
const dot = Image.fromBase64(png, 'image/png')

interface Rig extends Stub {
  readonly model: ImageInstance
}

interface RigOptions {
  readonly modelId?: string
  readonly answer?: Answer
  readonly params?: Params
  readonly middleware?: Middleware[]
  readonly baseUrl?: string
}

function rig(vendor: string, options: RigOptions = {}): Rig {
  const { modelId = 'm', answer = hello, params = {}, middleware = [], baseUrl } = options
  const stubbed = stub(answer)
  const config = {
    apiKey,
    fetch: stubbed.fetch,
    retryStrategy: new NoRetry(),
    ...(baseUrl !== undefined && { baseUrl }),
  }
  const model = image({ model: providers.get(vendor)!(modelId), config, params, middleware })
  return { ...stubbed, model }
}

describe.each(imageVendors)('$name', ({ name, provider }) => {
  test('UPP-137 UPP-138 UPP-150 makes an image with bytes, usage and metadata', async () => {
    const { model, seen } = rig(name)
    const result = await model.generate('A red dot')
    expect(result.images).toHaveLength(1)
    const [{ image: made }] = result.images as [{ image: Image }]
    expect(made.toBytes()).toEqual(bytes)
    expect([made.type, made.mimeType, made.toBase64()]).toEqual(['image', 'image/png', png])
    expect(result.usage).toMatchObject({ imagesGenerated: 1 })
    expect(result.metadata).toHaveProperty([provider.name])
    expect(seen).toHaveLength(1)
    expect(seen[0]!.body).toContain('A red dot')
  })

  test('UPP-134 every option of the vendor travels in params, unchanged', async () => {
    const params = { size: '1024x1024', quality: 'hd', x_unknown: { a: [1, null] } }
    const { model, seen } = rig(name, { params })
    await model.generate('A dot')
    for (const [field, value] of Object.entries(params)) {
      expect(seen[0]!.body).toContain(`"${field}":${JSON.stringify(value)}`)
    }
  })

  test('UPP-135 UPP-150 what it can do works, what it cannot is INVALID_REQUEST before any request', async () => {
    const { model, seen } = rig(name)
    const { capabilities } = model
    expect(capabilities).toEqual(provider.handlers.image!.bind(provider('m')).capabilities)
    const refused = { code: 'INVALID_REQUEST', modality: 'image', provider: provider.name }
    const edit = model.edit({ prompt: 'Make it blue', image: dot })
    if (capabilities.edit) expect((await edit).images[0]!.image.toBytes()).toEqual(bytes)
    else await expect(edit).rejects.toMatchObject(refused)
    if (capabilities.streaming) expect((await model.stream('A dot').result).images).toHaveLength(1)
    else expect(() => model.stream('A dot')).toThrow(expect.objectContaining(refused))
    expect(seen).toHaveLength(Number(capabilities.edit) + Number(capabilities.streaming))
  })

  test('UPP-136 capabilities are plain, frozen facts', () => {
    const { capabilities } = rig(name).model
    expect(capabilities).toMatchObject({
      generate: true,
      streaming: expect.any(Boolean),
      edit: expect.any(Boolean),
    })
    expect(Object.isFrozen(capabilities)).toBe(true)
  })

  test('UPP-135 a prompt that is no text, and an edit without an image, are refused', async () => {
    const { model, seen } = rig(name)
    const refused = { code: 'INVALID_REQUEST', modality: 'image' }
    await expect(model.generate(7 as unknown as string)).rejects.toMatchObject(refused)
    await expect(model.edit({ prompt: 'x' })).rejects.toMatchObject(refused)
    expect((await model.generate({ prompt: 'A dot' })).images).toHaveLength(1)
    expect(seen).toHaveLength(1)
  })
})

describe('OpenAI', () => {
  test.each([
    ['dall-e-3', { generate: true, streaming: false, edit: false, maxImages: 1 }],
    ['dall-e-2', { generate: true, streaming: false, edit: true, maxImages: 10 }],
    ['gpt-image-1', { generate: true, streaming: true, edit: true, maxImages: 10 }],
  ])('UPP-136 %s', (modelId, expected) => {
    expect(rig('openai', { modelId }).model.capabilities).toEqual(expected)
  })

  test.each([
    ['google', 'gemini-3-image', { generate: true, streaming: false, edit: true }],
    ['google', 'imagen-4', { generate: true, streaming: false, edit: false, maxImages: 4 }],
    ['xai', 'grok-image', { generate: true, streaming: false, edit: false, maxImages: 10 }],
  ])('UPP-136 %s %s', (vendor, modelId, expected) => {
    expect(rig(vendor, { modelId }).model.capabilities).toEqual(expected)
  })

  test('UPP-134 the body has model, prompt and params, nothing else', async () => {
    const { model, seen } = rig('openai', { params: { size: '1024x1024', quality: 'hd' } })
    await model.generate('A sunset')
    const expected = { model: 'm', prompt: 'A sunset', size: '1024x1024', quality: 'hd' }
    expect(JSON.parse(seen[0]!.body)).toEqual(expected)
  })

  test('UPP-137 tokens, revised prompt and other fields are kept', async () => {
    const { model } = rig('openai')
    const { images, usage, metadata } = await model.generate('A dot')
    expect(usage).toEqual({ imagesGenerated: 1, inputTokens: 5, outputTokens: 7, totalTokens: 12 })
    expect(images[0]!.metadata).toEqual({ openai: { revised_prompt: 'A red dot.' } })
    expect(metadata).toEqual({ openai: { created: 1, output_format: 'png' } })
  })

  test.each([
    ['jpeg', '/9j/4AAQSkZJRgABAQAAAQABAAD/', 'image/jpeg'],
    ['webp', 'UklGRiQAAABXRUJQVlA4IBgAAAAw', 'image/webp'],
    ['png', '/9j/4AAQSkZJRgABAQAAAQABAAD/', 'image/jpeg'],
    ['webp', 'AAAA', 'image/webp'],
  ])(
    'UPP-138 %s: the type is that of the bytes, then that of the format',
    async (format, data, type) => {
      const answer = (): Response =>
        Response.json({ output_format: format, data: [{ b64_json: data }] })
      const { images } = await rig('openai', { answer }).model.generate('A dot')
      expect(images[0]!.image.mimeType).toBe(type)
    },
  )

  test('UPP-137 every image of the answer, with what was said about it', async () => {
    const data = ['one', 'two'].map((x_note) => ({ b64_json: png, x_note }))
    const { model } = rig('openai', { answer: () => Response.json({ data }) })
    const { images, usage } = await model.generate('Two dots')
    expect(images.map(({ metadata }) => metadata)).toEqual([
      { openai: { x_note: 'one' } },
      { openai: { x_note: 'two' } },
    ])
    for (const { image: made } of images) expect(made.toBytes()).toEqual(bytes)
    expect(usage).toEqual({ imagesGenerated: 2 })
  })

  test('UPP-137 UPP-138 an image’s own format comes before that of the answer; the cost is kept', async () => {
    const data = [{ b64_json: 'AAAA', output_format: 'webp' }, { b64_json: 'AAAA' }]
    const usage = { input_tokens: 1, output_tokens: 2, total_tokens: 3, cost: 0.04 }
    const answer = (): Response => Response.json({ output_format: 'jpeg', data, usage })
    const result = await rig('openai', { answer }).model.generate('A dot')
    expect(result.images.map(({ image: made }) => made.mimeType)).toEqual([
      'image/webp',
      'image/jpeg',
    ])
    expect(result.usage).toEqual({
      imagesGenerated: 2,
      inputTokens: 1,
      outputTokens: 2,
      totalTokens: 3,
      costUsd: 0.04,
    })
  })

  test('UPP-137 data that is not base64 is INVALID_RESPONSE', async () => {
    const answer = (): Response => Response.json({ data: [{ b64_json: '!!!!' }] })
    await expect(rig('openai', { answer }).model.generate('x')).rejects.toMatchObject({
      code: 'INVALID_RESPONSE',
      modality: 'image',
    })
  })

  test('UPP-150 previews come as they are made, then the image, then the end', async () => {
    const { model, seen } = rig('openai', { params: { partial_images: 1 } })
    const events: ImageStreamEvent[] = []
    const stream = model.stream('A dot')
    for await (const event of stream) events.push(event)
    expect(events.map(({ type }) => type)).toEqual(['preview', 'image', 'end'])
    const [preview, final] = events
    expect(preview?.type === 'preview' && preview.image.toBytes()).toEqual(bytes)
    expect(final?.type === 'image' && final.image.image.toBytes()).toEqual(bytes)
    expect(await stream.result).toMatchObject({
      images: [{ image: { mimeType: 'image/png' } }],
      usage: { imagesGenerated: 1, inputTokens: 5, outputTokens: 7, totalTokens: 12 },
      metadata: { openai: { size: '1024x1024', output_format: 'png' } },
    })
    const expected = { model: 'm', prompt: 'A dot', stream: true, partial_images: 1 }
    expect(JSON.parse(seen[0]!.body)).toEqual(expected)
  })

  test('UPP-150 an error in the stream, or no image at its end, is an error', async () => {
    const sse = (text: string) => (): Response =>
      new Response(text, { headers: { 'content-type': 'text/event-stream' } })
    const failed = sse(
      'event: error\ndata: {"type":"error","error":{"message":"Blocked","code":"moderation_blocked"}}\n\n',
    )
    await expect(rig('openai', { answer: failed }).model.stream('x').result).rejects.toMatchObject({
      code: 'CONTENT_FILTERED',
      modality: 'image',
    })
    const empty = sse('data: [DONE]\n\n')
    await expect(rig('openai', { answer: empty }).model.stream('x').result).rejects.toMatchObject({
      code: 'INVALID_RESPONSE',
    })
  })

  test('UPP-150 an edit is a form: images, mask, prompt and params', async () => {
    let form: FormData | undefined
    const { fetch } = stub()
    const config = {
      apiKey,
      fetch: async (url: string, init: RequestInit) => {
        form = init.body as FormData
        return fetch(url, init)
      },
    }
    const params = { size: '512x512', n: 2, input_fidelity: 'high' }
    const model = image({ model: providers.get('openai')!('gpt-image-1'), config, params })
    await model.edit({ prompt: 'Join them', images: [dot, Image.fromBytes(bytes)], mask: dot })
    const files = form!.getAll('image[]') as File[]
    expect(files.map(({ type, name }) => [type, name])).toEqual([
      ['image/png', 'image-1.png'],
      ['image/png', 'image-2.png'],
    ])
    expect(new Uint8Array(await files[1]!.arrayBuffer())).toEqual(bytes)
    expect((form!.get('mask') as File).type).toBe('image/png')
    const fields = ['model', 'prompt', 'size', 'n', 'input_fidelity'].map((name) => form!.get(name))
    expect(fields).toEqual(['gpt-image-1', 'Join them', '512x512', '2', 'high'])
    await model.edit({ prompt: 'One', image: dot })
    expect(form!.getAll('image')).toHaveLength(1)
  })

  test('UPP-150 the form is written with its boundary by every client', async () => {
    const { createServer } = await import('node:http')
    const types: (string | undefined)[] = []
    const server = createServer((request, response) => {
      types.push(request.headers['content-type'])
      request.resume().on('end', () => response.end(JSON.stringify({ data: [{ b64_json: png }] })))
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const baseUrl = `http://127.0.0.1:${(server.address() as { port: number }).port}/v1`
    for (const config of [
      { apiKey, baseUrl },
      { apiKey, baseUrl, fetch: globalThis.fetch as never },
    ]) {
      const model = image({ model: providers.get('openai')!('gpt-image-1'), config })
      await model.edit({ prompt: 'x', image: dot })
    }
    server.closeAllConnections()
    server.close()
    expect(types).toHaveLength(2)
    for (const type of types) expect(type).toMatch(/^multipart\/form-data; ?boundary=/)
  })

  test('UPP-150 an image to edit that is only an address is refused', async () => {
    const { model, seen } = rig('openai')
    const address = Image.fromUrl('https://x.test/a.png')
    await expect(model.edit({ prompt: 'x', image: address })).rejects.toMatchObject({
      code: 'INVALID_REQUEST',
    })
    expect(seen).toEqual([])
  })
})

describe('an answer by address', () => {
  const byUrl = (url: string, download: Answer = () => new Response(bytes)): Answer => {
    return (seen, count) =>
      seen.method === 'GET' ? download(seen, count) : Response.json({ data: [{ url }] })
  }

  test('UPP-138 is fetched, without key or custom headers, so that the bytes are there', async () => {
    const { fetch, seen } = stub(byUrl('https://cdn.example.com/a.png?sig=1'))
    const config = { apiKey, fetch, headers: { 'x-team': 'blue' } }
    const model = image({ model: providers.get('openai')!('dall-e-3'), config })
    const { images } = await model.generate('A dot')
    expect(images[0]!.image.toBytes()).toEqual(bytes)
    expect(images[0]!.image.mimeType).toBe('image/png')
    const download = seen[1]!
    expect(download).toMatchObject({ method: 'GET', url: 'https://cdn.example.com/a.png?sig=1' })
    const names = [...download.headers.keys()]
    expect(names).toEqual(['accept'])
  })

  test.each([
    'http://cdn.example.com/a.png',
    'https://127.0.0.1/a.png',
    'https://2130706433/a.png',
    'https://[::1]/a.png',
    'https://[::ffff:10.0.0.1]/a.png',
    'https://[2001:20::1]/a.png',
    'https://[3fff::1]/a.png',
    'https://192.88.99.1/a.png',
    'https://printer.lan./a.png',
    'https://169.254.169.254/latest/meta-data',
    'https://10.1.2.3/a.png',
    'https://192.168.0.1/a.png',
    'https://localhost/a.png',
    'https://metadata.google.internal/a.png',
    'file:///etc/passwd',
  ])('UPP-138 %s is not fetched: it stays an address, and says so', async (url) => {
    const { model, seen } = rig('openai', { answer: byUrl(url) })
    const { images } = await model.generate('A dot')
    expect(seen).toHaveLength(1)
    expect(images[0]!.image.source).toEqual({ type: 'url', url })
    expect(() => images[0]!.image.toBytes()).toThrow(
      expect.objectContaining({ code: 'INVALID_REQUEST', hint: expect.stringContaining('url') }),
    )
  })

  test('UPP-138 the host that the caller configured is trusted', async () => {
    const baseUrl = 'http://127.0.0.1:9999/v1'
    const { model } = rig('xai', { baseUrl, answer: byUrl('http://127.0.0.1:9999/files/a.png') })
    const { images } = await model.generate('A dot')
    expect(images[0]!.image.toBytes()).toEqual(bytes)
  })

  test('UPP-138 one that cannot be fetched stays an address: the image was paid for', async () => {
    const url = 'https://cdn.example.com/a.png'
    const gone = byUrl(url, () => new Response('gone', { status: 404 }))
    const { images } = await rig('openai', { answer: gone }).model.generate('A dot')
    expect(images[0]!.image.source).toEqual({ type: 'url', url })
  })

  test('UPP-138 a data address needs no fetching', async () => {
    const { model, seen } = rig('openrouter')
    expect((await model.generate('A dot')).images[0]!.image.toBytes()).toEqual(bytes)
    expect(seen).toHaveLength(1)
  })
})

describe('Google', () => {
  test('UPP-134 Imagen: prompt as instance, params as parameters', async () => {
    const { model, seen } = rig('google', { modelId: 'imagen-4', params: { sampleCount: 2 } })
    const { images } = await model.generate('A dot')
    expect(images[0]!.image.toBytes()).toEqual(bytes)
    expect(new URL(seen[0]!.url).pathname).toBe('/v1beta/models/imagen-4:predict')
    expect(JSON.parse(seen[0]!.body)).toEqual({
      instances: [{ prompt: 'A dot' }],
      parameters: { sampleCount: 2 },
    })
    expect(model.capabilities).toEqual({
      generate: true,
      streaming: false,
      edit: false,
      maxImages: 4,
    })
  })

  test('UPP-134 Gemini: generation parameters may be loose, as with its language models', async () => {
    const params = { imageConfig: { aspectRatio: '1:1' }, seed: 7, safetySettings: [] }
    const { model, seen } = rig('google', { params })
    await model.generate('A dot')
    expect(JSON.parse(seen[0]!.body)).toEqual({
      contents: [{ role: 'user', parts: [{ text: 'A dot' }] }],
      safetySettings: [],
      generationConfig: {
        responseModalities: ['TEXT', 'IMAGE'],
        imageConfig: { aspectRatio: '1:1' },
        seed: 7,
      },
    })
  })

  test('UPP-134 Gemini: asked for images; generationConfig of the caller wins', async () => {
    const generationConfig = { responseModalities: ['IMAGE'], imageConfig: { aspectRatio: '1:1' } }
    const { model, seen } = rig('google', { params: { generationConfig, safetySettings: [] } })
    const { usage, metadata } = await model.generate('A dot')
    expect(JSON.parse(seen[0]!.body)).toEqual({
      contents: [{ role: 'user', parts: [{ text: 'A dot' }] }],
      generationConfig,
      safetySettings: [],
    })
    expect(usage).toMatchObject({ imagesGenerated: 1, inputTokens: 3, totalTokens: 4 })
    expect(metadata).toMatchObject({ google: { modelVersion: 'm', text: 'Here:' } })
  })

  test('UPP-150 Gemini edits what it is shown; it takes no mask', async () => {
    const { model, seen } = rig('google')
    await model.edit({ prompt: 'Bluer', images: [dot, dot] })
    expect(JSON.parse(seen[0]!.body).contents[0].parts).toHaveLength(3)
    const masked = model.edit({ prompt: 'x', image: dot, mask: dot })
    await expect(masked).rejects.toMatchObject({
      code: 'INVALID_REQUEST',
      provider: 'google',
      modality: 'image',
    })
  })

  test.each([
    [{ promptFeedback: { blockReason: 'SAFETY' } }, 'CONTENT_FILTERED'],
    [{ candidates: [{ finishReason: 'IMAGE_SAFETY' }] }, 'CONTENT_FILTERED'],
    [{ candidates: [{ content: { parts: [{ text: 'I cannot.' }] } }] }, 'INVALID_RESPONSE'],
  ])('UPP-150 %j is %s', async (body, code) => {
    const { model } = rig('google', { answer: () => Response.json(body) })
    await expect(model.generate('x')).rejects.toMatchObject({
      code,
      modality: 'image',
      provider: 'google',
    })
  })

  test('UPP-137 Gemini: images of all candidates but drafts; text and thoughts are counted', async () => {
    const inlineData = { mimeType: 'image/png', data: png }
    const body = {
      candidates: [
        { content: { parts: [{ text: 'One, ' }, { inlineData, thought: true }, { inlineData }] } },
        { content: { parts: [{ inlineData: { mimeType: 'text/plain', data: 'AA==' } }, { text: 'two.' }, { inlineData }] } }, // prettier-ignore
      ],
      usageMetadata: { promptTokenCount: 3, candidatesTokenCount: 4, thoughtsTokenCount: 5, totalTokenCount: 12 }, // prettier-ignore
      responseId: 'r',
    }
    const { model } = rig('google', { answer: () => Response.json(body) })
    const { images, usage, metadata } = await model.generate('x')
    expect(images).toHaveLength(2)
    expect(usage).toEqual({ imagesGenerated: 2, inputTokens: 3, outputTokens: 9, totalTokens: 12 })
    expect(metadata).toEqual({ google: { responseId: 'r', text: 'One, two.' } })
  })

  test('UPP-137 Imagen: what was filtered is listed next to the images that were made', async () => {
    const predictions = [
      { bytesBase64Encoded: png, mimeType: 'image/png', prompt: 'better' },
      { raiFilteredReason: 'violence' },
    ]
    const answer = (): Response => Response.json({ predictions, model: 'i' })
    const { model } = rig('google', { modelId: 'imagen-4', answer })
    const { images, metadata } = await model.generate('x')
    expect(images.map((one) => one.metadata)).toEqual([{ google: { prompt: 'better' } }])
    expect(metadata).toEqual({ google: { model: 'i', raiFilteredReason: 'violence' } })
  })

  test('UPP-150 Imagen: all filtered is CONTENT_FILTERED, with the reason', async () => {
    const answer = (): Response =>
      Response.json({ predictions: [{ raiFilteredReason: 'violence' }] })
    const { model } = rig('google', { modelId: 'imagen-4', answer })
    await expect(model.generate('x')).rejects.toMatchObject({
      code: 'CONTENT_FILTERED',
      message: expect.stringContaining('violence'),
      provider: 'google',
      modality: 'image',
    })
  })
})

describe('calls', () => {
  test('UPP-040 UPP-041 a provider without images is refused immediately', () => {
    expect(() => image({ model: providers.get('anthropic')!('m') })).toThrow(
      expect.objectContaining({
        code: 'INVALID_REQUEST',
        modality: 'image',
        provider: 'anthropic',
      }),
    )
  })

  test('UPP-135 a signal ends a call, abort and leaving the loop end a stream', async () => {
    const hang: Answer = () => new Promise(() => {})
    const controller = new AbortController()
    setTimeout(() => controller.abort(), 5)
    const { model } = rig('openai', { answer: hang })
    await expect(model.generate('x', { signal: controller.signal })).rejects.toMatchObject({
      code: 'CANCELLED',
    })
    const stream = model.stream('x')
    setTimeout(() => stream.abort(), 5)
    await expect(stream.result).rejects.toMatchObject({ code: 'CANCELLED' })
    const left = rig('openai').model.stream('x')
    for await (const _ of left) break
    await expect(left.result).rejects.toMatchObject({ code: 'CANCELLED' })
  })

  test('UPP-105 hooks run around every kind of call', async () => {
    const log: string[] = []
    const watch: Middleware = {
      name: 'watch',
      onRequest: (context) => {
        const request = context.request as ImageRequest
        context.request = { ...request, prompt: `${request.prompt}, please` }
      },
      onEnd: ({ modality, streaming }) => void log.push(`${modality} ${streaming}`),
      onError: (error) => void log.push((error as UPPError).code),
    }
    const { model, seen } = rig('openai', { middleware: [watch] })
    await model.generate('A dot')
    await model.edit({ prompt: 'A dot', image: dot })
    for await (const _ of model.stream('A dot'));
    await rig('openai', { middleware: [watch], answer: () => new Response('', { status: 500 }) })
      .model.generate('x')
      .catch(() => {})
    expect(log).toEqual(['image false', 'image false', 'image true', 'PROVIDER_ERROR'])
    expect(seen[0]!.body).toContain('A dot, please')
  })
})

test('UPP-138 an Image is an ImageBlock, from whatever source', () => {
  const sources = [Image.fromBytes(bytes), Image.fromBase64(png), Image.fromBlock(dot.toBlock())]
  for (const one of sources) {
    expect(one).toMatchObject({ type: 'image', mimeType: 'image/png' })
    expect(one.toBytes()).toEqual(bytes)
    expect(one.toBase64()).toBe(png)
  }
})

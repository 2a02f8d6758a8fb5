import {
  createProvider,
  image,
  Image,
  NoRetry,
  type ImageInstance,
  type ImageStreamEvent,
  type Params,
} from '@skein/ai'
import { describe, expect, test } from 'vitest'
import { hello, png, stub, type Answer } from './support/stub.ts'
import { vendors } from './support/vendors.ts'

const providers = new Map(vendors.map(({ name, provider }) => [name, provider]))
const dot = Image.fromBase64(png, 'image/png')

interface RigOptions {
  readonly modelId?: string
  readonly params?: Params
  readonly answer?: Answer
  readonly baseUrl?: string
}

function rig(vendor: string, { modelId = 'm', params, answer = hello, baseUrl }: RigOptions = {}) {
  const { fetch, seen } = stub(answer)
  const sent: unknown[] = []
  const config = {
    apiKey: 'key-0123456789',
    retryStrategy: new NoRetry(),
    fetch: (url: string, init: RequestInit) => {
      const form = init.body instanceof FormData && Object.fromEntries(init.body)
      sent.push(form || (init.body ? JSON.parse(init.body as string) : undefined))
      return fetch(url, init)
    },
    ...(baseUrl && { baseUrl }),
  }
  const model = image({ model: providers.get(vendor)!(modelId), config, ...(params && { params }) })
  return { model, sent, seen }
}

const made = (model: ImageInstance): Promise<unknown> => model.generate('A dot')
const edited = (model: ImageInstance): Promise<unknown> =>
  model.edit({ prompt: 'A dot', image: dot })
const streamed = (model: ImageInstance): Promise<unknown> => model.stream('A dot').result

const params = { x_text: 'a', x_list: [1, null], x_object: { deep: { b: true } }, x_number: 0.5 }
const turn = (text: string, ...parts: object[]) => [{ role: 'user', parts: [{ text }, ...parts] }]
const asked = (...parts: object[]) => [
  { role: 'user', content: [{ type: 'text', text: 'A dot' }, ...parts] },
]
const shown = { type: 'image_url', image_url: { url: `data:image/png;base64,${png}` } }
const inline = { inlineData: { mimeType: 'image/png', data: png } }
const generationConfig = { responseModalities: ['TEXT', 'IMAGE'] }
const body = { model: 'm', prompt: 'A dot' }
const chat = { model: 'm', messages: asked(), modalities: ['image', 'text'] }
const file = expect.any(File) as unknown

describe('UPP-134 UPP-151 the whole body: what the caller gave, and nothing else', () => {
  const cases: [string, string, (model: ImageInstance) => Promise<unknown>, RigOptions, unknown][] =
    [
      ['openai', 'makes', made, {}, body],
      ['openai', 'makes with params', made, { params }, { ...body, ...params }],
      ['openai', 'streams', streamed, {}, { ...body, stream: true }],
      ['openai', 'streams with params', streamed, { params }, { ...body, stream: true, ...params }],
      ['openai', 'edits', edited, {}, { ...body, image: file }],
      [
        'openai',
        'edits with params',
        edited,
        { params },
        {
          ...body,
          image: file,
          x_text: 'a',
          x_list: '[1,null]',
          x_object: '{"deep":{"b":true}}',
          x_number: '0.5',
        },
      ],
      ['azure-openai', 'makes', made, { params }, { ...body, ...params }],
      ['xai', 'makes', made, { params }, { ...body, ...params }],
      ['openrouter', 'makes', made, {}, chat],
      ['openrouter', 'edits', edited, { params }, { ...chat, messages: asked(shown), ...params }],
      [
        'openrouter',
        'makes with modalities of the caller',
        made,
        { params: { modalities: ['image'] } },
        { ...chat, modalities: ['image'] },
      ],
      ['google', 'makes', made, {}, { contents: turn('A dot'), generationConfig }],
      [
        'google',
        'edits',
        edited,
        { params },
        { contents: turn('A dot', inline), generationConfig, ...params },
      ],
      [
        'google',
        'makes with Imagen',
        made,
        { modelId: 'imagen-4' },
        { instances: [{ prompt: 'A dot' }] },
      ],
      [
        'google',
        'makes with Imagen and params',
        made,
        { modelId: 'models/imagen-4', params },
        { instances: [{ prompt: 'A dot' }], parameters: params },
      ],
    ]
  test.each(cases)('UPP-134 UPP-151 %s %s', async (vendor, _, call, options, expected) => {
    const { model, sent } = rig(vendor, options)
    await call(model)
    expect(sent).toEqual([expected])
  })
})

const frames = (...events: object[]): Answer => {
  const text = events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join('')
  return () => new Response(text, { headers: { 'content-type': 'text/event-stream' } })
}

test.each([undefined, null, 7, true, {}, { prompt: 7 }])(
  'UPP-135 the prompt %j is refused by every form of call',
  async (prompt) => {
    const { model, seen } = rig('openai')
    const refused = { code: 'INVALID_REQUEST', modality: 'image', provider: 'openai' }
    await expect(model.generate(prompt as never)).rejects.toMatchObject(refused)
    const asked = typeof prompt === 'object' ? prompt : { prompt }
    const edit = { ...asked, image: dot } as never
    await expect(model.edit(edit)).rejects.toMatchObject(refused)
    await expect(model.edit(prompt as never)).rejects.toMatchObject(refused)
    expect(() => model.stream(prompt as never)).toThrow(expect.objectContaining(refused))
    expect(seen).toEqual([])
  },
)

test.each([{}, { image: null }, { images: null }, { images: [] }, { images: dot }])(
  'UPP-135 UPP-030 an edit of %j has no images: refused before it is sent',
  async (given) => {
    const { model, seen } = rig('openai')
    await expect(model.edit({ prompt: 'x', ...given } as never)).rejects.toMatchObject({
      code: 'INVALID_REQUEST',
      message: 'There is no image to edit.',
      modality: 'image',
    })
    expect(seen).toEqual([])
  },
)

test('UPP-137 the usage and the metadata of a stream are those of its last image', async () => {
  const completed = (output_tokens: number, size: string): object => ({
    type: 'image_generation.completed',
    b64_json: png,
    size,
    usage: { input_tokens: 1, output_tokens, total_tokens: output_tokens + 1 },
  })
  const { model } = rig('openai', { answer: frames(completed(2, 'small'), completed(5, 'large')) })
  const { images, usage, metadata } = await model.stream('x').result
  expect(images).toHaveLength(2)
  expect(usage).toEqual({ imagesGenerated: 2, inputTokens: 1, outputTokens: 5, totalTokens: 6 })
  expect(metadata).toEqual({ openai: { size: 'large' } })
})

test.each([
  ['with a type', { type: 'error', error: { message: 'No.', code: 'moderation_blocked' } }],
  ['without a type', { error: { message: 'No.', code: 'moderation_blocked' } }],
])('UPP-150 an error in a stream %s fails it, also after a preview', async (_, error) => {
  const preview = { type: 'image_generation.partial_image', b64_json: png }
  for (const events of [[error], [preview, error]]) {
    const { model } = rig('openai', { answer: frames(...events) })
    await expect(model.stream('x').result).rejects.toMatchObject({
      code: 'CONTENT_FILTERED',
      modality: 'image',
      provider: 'openai',
    })
  }
})

test('UPP-137 UPP-150 UPP-156 a server that does not stream gives the same result as without a stream', async () => {
  const answer = (): Response =>
    Response.json({
      created: 1,
      x_new: 'kept',
      data: [{ b64_json: png, revised_prompt: 'p' }],
      usage: { input_tokens: 5, output_tokens: 7, total_tokens: 12 },
    })
  const stream = rig('openai', { answer }).model.stream('A dot')
  const events: ImageStreamEvent[] = []
  for await (const event of stream) events.push(event)
  const { images, usage, metadata } = await rig('openai', { answer }).model.generate('A dot')
  expect(metadata).toEqual({ openai: { created: 1, x_new: 'kept' } })
  const { imagesGenerated: _, ...tokens } = usage!
  expect(events.at(-1)).toEqual({ type: 'end', usage: expect.objectContaining(tokens), metadata })
  expect(await stream.result).toMatchObject({ images, usage: tokens, metadata })
})

test('UPP-150 the images of a stream are at their index, in whatever order they end', async () => {
  const noted = (note: string) => ({ image: dot.toBlock(), metadata: { some: { note } } })
  const [first, second] = [noted('first'), noted('second')]
  const provider = createProvider({
    name: 'some',
    image: {
      bind: ({ modelId }) => ({
        modelId,
        provider: 'some',
        capabilities: { generate: false, streaming: true, edit: false },
        generate: () => Promise.reject(new Error('not asked')),
        async *stream() {
          yield { type: 'image', index: 1, image: second }
          yield { type: 'image', index: 0, image: first }
          yield { type: 'end' }
        },
      }),
    },
  })
  const { images } = await image({ model: provider('m') }).stream('x').result
  expect(images.map(({ metadata }) => metadata)).toEqual([
    { some: { note: 'first' } },
    { some: { note: 'second' } },
  ])
})

test.each([
  ['https://vendor.test/v1', 'http://vendor.test/a.png'],
  ['http://vendor.test/v1', 'https://vendor.test/a.png'],
  ['https://vendor.test/v1', 'http://elsewhere.test/a.png'],
])('UPP-163 with the base %s, %s is not fetched', async (baseUrl, url) => {
  const answer = (): Response => Response.json({ data: [{ url }] })
  const { model, seen } = rig('openai', { answer, baseUrl })
  const { images } = await model.generate('x')
  expect(images[0]?.image.source).toEqual({ type: 'url', url })
  expect(seen).toHaveLength(1)
})

test('UPP-138 UPP-161 a downloaded image has the type of its bytes, then that of the vendor', async () => {
  const jpeg = Uint8Array.from([0xff, 0xd8, 0xff, 0xe0, 0, 16])
  const url = 'https://files.test/a'
  for (const [bytes, type] of [
    [jpeg, 'image/jpeg'],
    [Uint8Array.of(1, 2), 'image/webp'],
  ] as const) {
    const answer: Answer = ({ url: asked }) =>
      asked === url
        ? new Response(bytes)
        : Response.json({ data: [{ url, output_format: 'webp' }] })
    const { images } = await rig('openai', { answer }).model.generate('x')
    expect(images[0]?.image.toBytes()).toEqual(bytes)
    expect(images[0]?.image.mimeType).toBe(type)
  }
})

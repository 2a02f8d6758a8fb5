import fc from 'fast-check'
import { expect, test } from 'vitest'
import { type LLMCapabilities, type Message, type ModelReference, messageToJSON } from '@skein/ai'
import anthropic from '@skein/ai/anthropic'
import google from '@skein/ai/google'
import ollama from '@skein/ai/ollama'
import openai from '@skein/ai/openai'
import { calls, says, scripted, vendorServer } from '@skein/ai/testing'
import type { RuntimeLimits } from '../contract/limits.ts'
import type { PromptDefinition } from '../definitions/prompt-definition.ts'
import { defineAgent } from '../definitions/define-agent.ts'
import { defineHook, defineModel, definePrompt } from '../definitions/define.ts'
import { defineTool } from '../definitions/define-tool.ts'
import { createRuntime } from '../runtime.ts'
import { foldKernel } from '../state/fold.ts'
import { viewOf } from './view.ts'
import { mediaItems } from './media-in-messages.ts'

const PNG = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
)
const PDF = Buffer.from('%PDF-1.4\n%%EOF\n')
const WAV = Buffer.concat([Buffer.from('RIFF\x24\0\0\0WAVEfmt ', 'latin1'), Buffer.alloc(28)])

const files: Readonly<Record<string, Uint8Array>> = {
  '/cat.png': PNG,
  '/paper.pdf': PDF,
  '/voice.wav': WAV,
  '/notes.txt': Buffer.from('three ships'),
}

type Prompt = Partial<Omit<PromptDefinition, 'kind' | 'name' | 'model'>>

/** A thread with four files, whose agent has this model. */
async function open(
  model: ModelReference | ReturnType<typeof defineModel>,
  options: { readonly prompt?: Prompt; readonly limits?: Partial<RuntimeLimits> } = {},
) {
  const prompt = definePrompt({ name: 'main', prompt: 'Look.', model, ...options.prompt })
  const agent = defineAgent({ name: 'viewer', sideA: { prompt } })
  const runtime = await createRuntime({ agents: [agent], limits: options.limits })
  await runtime.start()
  const { id } = await runtime.threads.create({ agent: 'viewer' })
  for (const [path, bytes] of Object.entries(files))
    await runtime.threads.files.write(id, path, bytes)
  const log = async (): Promise<string> => JSON.stringify(await runtime.threads.events(id))
  const ask = (text: string, attachments: readonly string[] = []) =>
    runtime.threads.run(id, { text, attachments })
  return { runtime, id, ask, log, threads: runtime.threads }
}

/** The text and the types of the blocks of a message. */
function shown(message: Message | undefined): { text: string; types: string[] } {
  const blocks = message?.type === 'user' ? message.content : []
  return { text: message?.text ?? '', types: blocks.map(({ type }) => type) }
}

const base64 = (bytes: Uint8Array): string => Buffer.from(bytes).toString('base64')

const wires = [
  {
    wire: 'anthropic-messages',
    model: anthropic('claude-sonnet-4-5'),
    image: {
      type: 'image',
      source: { type: 'base64', media_type: 'image/png', data: base64(PNG) },
    },
    pdf: {
      type: 'document',
      source: { type: 'base64', media_type: 'application/pdf', data: base64(PDF) },
      title: 'paper.pdf',
    },
    audio: undefined,
  },
  {
    wire: 'openai-chat',
    model: openai('gpt-audio', { api: 'chat' }),
    image: { type: 'image_url', image_url: { url: `data:image/png;base64,${base64(PNG)}` } },
    pdf: {
      type: 'file',
      file: {
        filename: 'paper.pdf',
        file_data: `data:application/pdf;base64,${base64(PDF)}`,
      },
    },
    audio: { type: 'input_audio', input_audio: { data: base64(WAV), format: 'wav' } },
  },
  {
    wire: 'openai-responses',
    model: openai('gpt-5'),
    image: { type: 'input_image', image_url: `data:image/png;base64,${base64(PNG)}` },
    pdf: {
      type: 'input_file',
      filename: 'paper.pdf',
      file_data: `data:application/pdf;base64,${base64(PDF)}`,
    },
    audio: undefined,
  },
  {
    wire: 'google-generate',
    model: google('gemini-2.5-flash'),
    image: { inlineData: { mimeType: 'image/png', data: base64(PNG) } },
    pdf: { inlineData: { mimeType: 'application/pdf', data: base64(PDF) } },
    audio: { inlineData: { mimeType: 'audio/wav', data: base64(WAV) } },
  },
  {
    wire: 'google-interactions',
    model: google('gemini-3.5-flash', { api: 'interactions' }),
    image: { type: 'image', data: base64(PNG), mime_type: 'image/png' },
    pdf: { type: 'document', data: base64(PDF), mime_type: 'application/pdf' },
    audio: { type: 'audio', data: base64(WAV), mime_type: 'audio/wav' },
  },
  {
    wire: 'ollama-chat',
    model: ollama('llava'),
    image: base64(PNG),
    pdf: undefined,
    audio: undefined,
  },
] as const

test.each(wires)('the vendor gets the bytes: $wire', async ({ wire, model, image, pdf, audio }) => {
  const vendor = vendorServer([calls('chart', {}), says('A cat.')])
  const chart = defineTool({
    name: 'chart',
    description: 'Draws a chart.',
    risk: 'read_only',
    execute: async () => ({
      type: 'image',
      source: { type: 'bytes', data: PNG },
      mimeType: 'image/png',
    }),
  })
  const defined = defineModel({
    name: 'vendor',
    model,
    config: { apiKey: 'k', fetch: vendor.fetch },
  })
  const { ask, log, runtime } = await open(defined, { prompt: { tools: [chart] } })
  const ended = await ask('What is this?', Object.keys(files))
  expect(ended.outcome).toBe('completed')
  const [first, second] = vendor.requests.map(({ body }) => JSON.stringify(body))
  for (const part of [image, pdf, audio]) {
    if (part) expect(first).toContain(JSON.stringify(part).slice(1, -1))
  }
  const name = JSON.stringify(model.modelId).slice(1, -1)
  if (!pdf) expect(first).toContain(`15 bytes): not shown, because ${name} takes no documents`)
  if (!audio) expect(first).toContain(`44 bytes): not shown, because ${name} takes no audio`)
  expect(first).toContain('/notes.txt (text/plain, 11 bytes)')
  // The image of the message, and that of the tool.
  expect(second!.split(base64(PNG))).toHaveLength(3)
  expect(wire).toBe(vendor.requests[0]!.wire)
  const stored = await log()
  for (const bytes of Object.values(files)) expect(stored).not.toContain(base64(bytes))
  await runtime.stop()
})

const blind: Partial<LLMCapabilities> = {
  imageInput: false,
  documentInput: false,
  audioInput: false,
}

test('a model that takes no media is told names and types', async () => {
  const model = scripted([says('I cannot see.')], { modelId: 'blind', capabilities: blind })
  const { ask, runtime } = await open(model)
  await ask('What is this?', Object.keys(files))
  const { text, types } = shown(model.requests[0]!.messages[0])
  expect(new Set(types)).toEqual(new Set(['text']))
  expect(text).toBe(
    [
      'What is this?Attached files:',
      '/cat.png (image/png, 70 bytes): not shown, because blind takes no images',
      '/paper.pdf (application/pdf, 15 bytes): not shown, because blind takes no documents',
      '/voice.wav (audio/wav, 44 bytes): not shown, because blind takes no audio of this type',
      '/notes.txt (text/plain, 11 bytes)',
    ].join('\n'),
  )
  await runtime.stop()
})

test('what the catalog and the definition say of a model counts', async () => {
  const cases = [
    [openai('gpt-4o', { api: 'chat' }), undefined, true],
    [openai('gpt-4', { api: 'chat' }), undefined, false], // the catalog: text alone
    [openai('gpt-4', { api: 'chat' }), { supportsImages: true }, true],
    [openai('gpt-4o', { api: 'chat' }), { supportsImages: false }, false],
  ] as const
  for (const [model, capabilities, isShown] of cases) {
    const vendor = vendorServer([says('Yes.')])
    const config = { apiKey: 'k', fetch: vendor.fetch }
    const { ask, runtime } = await open(defineModel({ name: 'm', model, capabilities, config }))
    await ask('Look', ['/cat.png'])
    const body = JSON.stringify(vendor.requests[0]!.body)
    expect([model.modelId, capabilities, body.includes('image_url')]).toEqual([
      model.modelId,
      capabilities,
      isShown,
    ])
    await runtime.stop()
  }
})

test('an image in the message itself is left out for a model that takes none', async () => {
  const model = scripted([says('Hm.')], { modelId: 'blind', capabilities: blind })
  const { id, threads, runtime } = await open(model)
  const image = {
    type: 'image',
    source: { type: 'base64', data: base64(PNG) },
    mimeType: 'image/png',
  }
  await threads.run(id, { text: 'Look', content: [image as never] })
  expect(shown(model.requests[0]!.messages[0])).toEqual({
    text: 'Look[image/png was here: not shown, because blind takes no images.]',
    types: ['text', 'text'],
  })
  await runtime.stop()
})

test('a picture of 20 MB is named, not read and not sent', async () => {
  const model = scripted([says('Too large.')])
  const { ask, id, threads, runtime } = await open(model)
  const large = Buffer.alloc(20 * 1024 * 1024)
  PNG.copy(large)
  await threads.files.write(id, '/large.png', large)
  const blob = runtime.store.blob.bind(runtime.store)
  const read: string[] = []
  runtime.store.blob = (hash) => {
    read.push(hash)
    return blob(hash)
  }
  await ask('Look', ['/large.png', '/cat.png'])
  const { text, types } = shown(model.requests[0]!.messages[0])
  expect(text).toContain(
    '/large.png (image/png, 20971520 bytes): not shown, because an image may have 3932160 bytes (the limit maxImageBytes)',
  )
  expect(types).toEqual(['text', 'text', 'text', 'image'])
  expect(read).toHaveLength(1)
  await runtime.stop()
})

test('property: the newest files are shown, within the limits of count, bytes and age', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.integer({ min: 0, max: 300 }), { minLength: 1, maxLength: 8 }),
      fc.record({
        maxMediaFiles: fc.integer({ min: 0, max: 5 }),
        maxMediaBytes: fc.integer({ min: 0, max: 900 }),
        maxImageBytes: fc.integer({ min: 0, max: 400 }),
      }),
      fc.integer({ min: 0, max: 9 }),
      async (extra, limits, recentImageThreshold) => {
        const model = scripted(() => says('Ok.'))
        const { ask, id, threads, runtime } = await open(model, {
          limits,
          prompt: { recentImageThreshold },
        })
        const sizes = extra.map((more) => PNG.length + more)
        for (const [place, size] of sizes.entries()) {
          await threads.files.write(
            id,
            `/${place}.png`,
            Buffer.concat([PNG, Buffer.alloc(size - PNG.length, place)]),
          )
          await ask(`Picture ${place}`, [`/${place}.png`])
        }
        const { messages } = model.requests.at(-1)!
        const isShown = messages
          .filter(({ type }) => type === 'user')
          .map(({ images }) => images.length > 0)
        let { maxMediaFiles: files, maxMediaBytes: bytes } = limits
        const wanted = sizes.map(() => false)
        for (let place = sizes.length - 1; place >= 0; place--) {
          const size = sizes[place]!
          // A message and an answer for each picture, and no answer to the last one.
          const age = (sizes.length - 1 - place) * 2
          if (age >= recentImageThreshold || size > limits.maxImageBytes) continue
          if (files < 1 || size > bytes) continue
          wanted[place] = true
          files--
          bytes -= size
        }
        expect(isShown).toEqual(wanted)
        await runtime.stop()
      },
    ),
    { numRuns: 40 },
  )
})

test('a message shows its file as it was; a removed file is named, also after a restart of the fold', async () => {
  const model = scripted(() => says('Ok.'))
  const { ask, id, threads, runtime } = await open(model)
  const other = Buffer.concat([PNG, Buffer.from('other')])
  await ask('First', ['/cat.png'])
  await threads.files.write(id, '/cat.png', other)
  await ask('Second', ['/cat.png'])
  const bytesIn = ({ images }: Message): number[] =>
    images.map(({ source }) => (source.type === 'bytes' ? source.data.length : -1))
  expect(model.requests[1]!.messages.flatMap(bytesIn)).toEqual([PNG.length, other.length])
  await threads.files.remove(id, '/cat.png')
  await ask('Third')
  expect(model.requests[2]!.messages.flatMap(bytesIn)).toEqual([])
  expect(model.requests[2]!.messages[0]!.text).toContain('not shown, because it was removed')
  await runtime.stop()
})

test('a file whose content is something else is named, so that no vendor refuses the thread for ever', async () => {
  const model = scripted(() => says('Ok.'))
  const { ask, id, threads, runtime } = await open(model)
  await threads.files.write(id, '/fake.png', Buffer.from('<html>'))
  await threads.files.write(id, '/fake.pdf', Buffer.from('<html>'))
  await ask('Look', ['/fake.png', '/fake.pdf'])
  const { text, types } = shown(model.requests[0]!.messages[0])
  expect(types).toEqual(['text', 'text', 'text'])
  expect(text).toContain('its content is not of the type image/png')
  expect(text).toContain('its content is not of the type application/pdf')
  await runtime.stop()
})

test('nobody can have the file of another thread shown by naming its hash', async () => {
  const model = scripted(() => says('Ok.'))
  const { id, threads, runtime } = await open(model)
  const { id: mine } = await threads.create({ agent: 'viewer' })
  const theirs = (await threads.files.list(id)).find(({ path }) => path === '/cat.png')!
  await threads.files.write(mine, '/cat.png', Buffer.from('mine'))
  const { path, mediaType, sizeBytes, hash } = theirs
  const metadata = { skein: { file: { path, mediaType, sizeBytes, hash } } }
  await threads.run(mine, { text: 'Look', content: [{ type: 'text', text: 'x', metadata }] })
  expect(model.requests[0]!.messages.flatMap(({ images }) => images)).toEqual([])
  await runtime.stop()
})

test('a tool returns a file of the thread, alone or among texts; a missing one fails the call', async () => {
  const results: unknown[] = [
    { $file: '/new.png' },
    ['The chart:', { $file: '/cat.png' }, { type: 'text', text: 'Done.' }],
    { $file: '/missing.png' },
    { $file: '/notes.txt' },
  ]
  const model = scripted([...results.map(() => calls('draw', {})), says('Done.')])
  const draw = defineTool({
    name: 'draw',
    description: 'Draws.',
    risk: 'read_only',
    async execute(state) {
      await state.writeFile('/new.png', PNG)
      return results[model.requests.length - 1]
    },
  })
  const { ask, log, id, threads, runtime } = await open(model, { prompt: { tools: [draw] } })
  await ask('Draw')
  const sent = model.requests
    .at(-1)!
    .messages.flatMap((one) => (one.type === 'tool_result' ? one.results : []))
  const image = expect.objectContaining({ type: 'image', mimeType: 'image/png' }) as unknown
  const text = (words: string): unknown => expect.objectContaining({ type: 'text', text: words })
  expect(sent.map(({ result, isError }) => [result, isError ?? false])).toEqual([
    [[text('/new.png (image/png, 70 bytes)'), image], false],
    [[text('The chart:'), text('/cat.png (image/png, 70 bytes)'), image, text('Done.')], false],
    ['There is no file /missing.png in this thread.', true],
    [[text('/notes.txt (text/plain, 11 bytes)')], false],
  ])
  expect(await log()).not.toContain(base64(PNG))
  const [logged] = (await threads.logs(id)).slice(-1)
  const detail = JSON.stringify(await threads.log(id, logged!.logId))
  expect(detail).toContain('/new.png (image/png, 70 bytes)')
  expect(detail).not.toContain(base64(PNG))
  await runtime.stop()
})

test('a hook can take a file away from the model', async () => {
  const model = scripted(() => says('Ok.'))
  const hook = defineHook({
    hook: 'prefilter_llm_history',
    id: 'no-files',
    execute: async (_state, messages: readonly Message[]) =>
      messages.map((message) => {
        const json = messageToJSON(message) as { content: readonly { metadata?: unknown }[] }
        return { ...json, content: json.content.filter(({ metadata }) => !metadata) }
      }) as never,
  })
  const { ask, runtime } = await open(model, { prompt: { hooks: [hook] } })
  await ask('Look', ['/cat.png'])
  expect(shown(model.requests[0]!.messages[0])).toEqual({ text: 'Look', types: ['text'] })
  await runtime.stop()
})

test.each([
  ['a call that waits for it', true],
  ['a message', false],
])(
  'the pictures of a child’s report are shown to the parent’s model: %s',
  async (_, isBlocking) => {
    const done = defineTool({
      name: 'done',
      description: 'Ends the work.',
      risk: 'read_only',
      async execute(state) {
        await state.writeFile('/chart.png', PNG)
        await state.writeFile('/data.csv', Buffer.from('a,b'))
        return 'drawn'
      },
    })
    const draws = scripted([
      calls('done', { text: 'The chart.', files: ['/chart.png', '/data.csv'] }),
    ])
    const painter = defineAgent({
      name: 'painter',
      type: 'dual_ai',
      exposeAsTool: true,
      toolDescription: 'Paints.',
      maxSessionTurns: 2,
      sideA: {
        prompt: definePrompt({ name: 'painter_a', prompt: 'Paint.', model: draws, tools: [done] }),
        sessionStop: { name: 'done', messageProperty: 'text', attachmentsProperty: 'files' },
      },
      sideB: { prompt: definePrompt({ name: 'painter_b', prompt: 'Go.', model: scripted([]) }) },
    })
    const start = calls('subagent_create', { agent: 'painter', name: 'p', message: 'Paint.' })
    const model = scripted(({ messages }) => {
      if (!messages.some(({ type }) => type === 'tool_result'))
        return isBlocking ? calls('painter', {}) : start
      return says('I see.')
    })
    const tools = [isBlocking ? painter : { name: painter, blocking: false, resumable: {} }]
    const { ask, log, runtime, id } = await open(model, { prompt: { tools } })
    await ask('Paint')
    await runtime.idle()
    const last = model.requests.at(-1)!.messages
    const blocks = last.flatMap(mediaItems) as readonly { type: string; text?: string }[]
    expect(blocks.filter(({ type }) => type === 'image')).toMatchObject([{ mimeType: 'image/png' }])
    const words = blocks.map((block) => block.text ?? '').join('\n')
    expect(words).toContain('The chart.')
    // The words of the report name the files, so a message says nothing more about them.
    expect(words).toMatch(/\/attachments\/chart[^\n]*\.png/)
    expect(words.includes('(image/png, 70 bytes)')).toBe(isBlocking)
    expect(words).toMatch(/\.csv/)
    expect(words).not.toContain('text/csv')
    expect(await log()).not.toContain(base64(PNG))
    // The log alone gives the same request.
    const state = foldKernel(await runtime.threads.events(id))
    expect(JSON.stringify(viewOf(state, 'a', { definition: {} } as never))).toContain('image/png')
    await runtime.stop()
  },
)

import { manualClock } from '@skein/base'
import { describe, expect, test } from 'vitest'
import { embedding } from '../embedding.ts'
import { ErrorCode, UPPError } from '../contract/error.ts'
import { image } from '../image.ts'
import { llm } from '../llm.ts'
import { Image } from '../media/image.ts'
import type { DocumentBlock } from '../contract/content.ts'
import { AssistantMessage, UserMessage } from '../contract/message.ts'
import { createProvider, type ModelReference } from '../contract/provider.ts'
import { zeroUsage } from '../contract/turn.ts'
import { calls, cuts, emits, fails, says, scripted, waits } from '../testing/index.ts'
import { anthropic } from '../vendors/anthropic.ts'
import { azureOpenai } from '../vendors/azure-openai.ts'
import { google } from '../vendors/google.ts'
import { ollama } from '../vendors/ollama.ts'
import { openai } from '../vendors/openai.ts'
import { NoRetry } from '../transport/retry.ts'
import type { MemberInput } from './member.ts'
import type { StreamEvent } from '../contract/event.ts'
import { fallback } from './fallback.ts'

const failing = (code: ErrorCode, extra: object = {}): ReturnType<typeof fails> =>
  fails({ code, message: `It is ${code}.`, ...extra })

async function ask(model: ModelReference, streaming: boolean) {
  const instance = llm({ model })
  return streaming ? instance.stream('Hi').turn : instance.generate('Hi')
}

describe.each([{ streaming: false }, { streaming: true }])(
  'streaming: $streaming',
  ({ streaming }) => {
    test('the next model answers when one fails, and the turn says so', async () => {
      const first = scripted([failing('RATE_LIMITED')], { provider: 'one', modelId: 'a' })
      const second = scripted([says('From two.')], { provider: 'two', modelId: 'b' })
      const turn = await ask(fallback([first, second]), streaming)
      expect(turn.response.text).toBe('From two.')
      expect(turn.warnings).toEqual([
        { code: 'model_fallback', message: 'one/a failed with RATE_LIMITED.' },
      ])
    })

    test.each(['INVALID_REQUEST', 'CANCELLED'] as const)(
      '%s stays with its model',
      async (code) => {
        const second = scripted([says('no')])
        await expect(
          ask(fallback([scripted([failing(code)]), second]), streaming),
        ).rejects.toMatchObject({ code })
        expect(second.requests).toHaveLength(0)
      },
    )

    test('an answer without its terminal event is no answer', async () => {
      const model = fallback([scripted([cuts()]), scripted([says('Whole.')])])
      expect((await ask(model, streaming)).response.text).toBe('Whole.')
    })

    test('with all failed, the error names each and keeps them', async () => {
      const model = fallback([
        scripted([failing('RATE_LIMITED', { provider: 'one', retryAfterMs: 500 })]),
        scripted([failing('PROVIDER_ERROR', { provider: 'two', statusCode: 503 })]),
      ])
      const error: unknown = await ask(model, streaming).catch((thrown: unknown) => thrown)
      expect(error).toMatchObject({
        code: 'PROVIDER_ERROR',
        provider: 'two',
        statusCode: 503,
        retryAfterMs: 500,
        message: expect.stringContaining('one RATE_LIMITED, two PROVIDER_ERROR') as string,
      })
      expect((error as UPPError).cause).toBeInstanceOf(AggregateError)
    })
  },
)

test('message_start names the model that answered', async () => {
  const model = fallback([
    scripted([failing('TIMEOUT')]),
    scripted([says('x')], { provider: 'two', modelId: 'b' }),
  ])
  const events: StreamEvent[] = []
  for await (const event of llm({ model }).stream('Hi')) events.push(event)
  expect(events[0]).toMatchObject({
    type: 'message_start',
    delta: { provider: 'two', model: 'b' },
  })
  expect(events.filter(({ type }) => type === 'message_start')).toHaveLength(1)
})

test('after content was handed out a failure stays a failure', async () => {
  const second = scripted([says('no')])
  const model = fallback([scripted([[says('Half an'), failing('NETWORK_ERROR')]]), second])
  const stream = llm({ model }).stream('Hi')
  const seen: string[] = []
  const reading = (async () => {
    for await (const event of stream) if (event.type === 'text_delta') seen.push(event.delta.text)
  })()
  await expect(reading).rejects.toMatchObject({ code: 'NETWORK_ERROR' })
  expect(seen.join('')).toBe('Half an')
  expect(second.requests).toHaveLength(0)
})

test('`on` decides by code', async () => {
  const second = scripted([says('Second.')])
  const only = fallback([scripted([failing('TIMEOUT')]), second], { on: ['RATE_LIMITED'] })
  await expect(llm({ model: only }).generate('Hi')).rejects.toMatchObject({ code: 'TIMEOUT' })
  const wide = fallback([scripted([failing('INVALID_REQUEST')]), second], {
    on: ['INVALID_REQUEST'],
  })
  expect((await llm({ model: wide }).generate('Hi')).response.text).toBe('Second.')
})

describe('cooldown', () => {
  const setup = (code: ErrorCode, extra: object = {}) => {
    const clock = manualClock()
    const first = scripted((_, index) => (index === 0 ? failing(code, extra) : says('one')), {
      provider: 'one',
      modelId: 'a',
    })
    const second = scripted(() => says('two'))
    const model = llm({ model: fallback([first, second], { cooldownMs: 1000, clock }) })
    return { clock, text: async () => (await model.generate('Hi')).response.text, model }
  }

  test('a failed model rests, then is asked again', async () => {
    const { clock, text, model } = setup('PROVIDER_ERROR')
    expect(await text()).toBe('two')
    clock.advance(999)
    const turn = await model.generate('Hi')
    expect(turn.response.text).toBe('two')
    expect(turn.warnings[0]?.message).toBe('one/a rests after PROVIDER_ERROR.')
    clock.advance(1)
    expect(await text()).toBe('one')
  })

  test("the vendor's own word is honoured when it is longer", async () => {
    const { clock, text } = setup('RATE_LIMITED', { retryAfterMs: 5000 })
    await text()
    clock.advance(4999)
    expect(await text()).toBe('two')
    clock.advance(1)
    expect(await text()).toBe('one')
  })

  test('a failure that tells of the request alone lets nobody rest', async () => {
    const { text } = setup('CONTEXT_LENGTH_EXCEEDED')
    expect(await text()).toBe('two')
    expect(await text()).toBe('one')
  })

  test('when all rest, the one that wakes first is asked before giving up', async () => {
    const clock = manualClock()
    const long = scripted((_, index) =>
      index === 0 ? failing('RATE_LIMITED', { retryAfterMs: 90_000 }) : says('long'),
    )
    const short = scripted((_, index) => (index === 0 ? failing('TIMEOUT') : says('short')))
    const model = llm({ model: fallback([long, short], { clock }) })
    await expect(model.generate('Hi')).rejects.toMatchObject({ code: 'TIMEOUT' })
    const turn = await model.generate('Hi')
    expect(turn.response.text).toBe('short')
    expect(turn.warnings).toEqual([])
    // Its success ended its rest.
    expect((await model.generate('Hi')).warnings).toHaveLength(1)
  })
})

test('an abort ends the call; nobody else is asked', async () => {
  const second = scripted([says('no')])
  const stream = llm({ model: fallback([scripted([waits(Infinity)]), second]) }).stream('Hi')
  setTimeout(() => stream.abort(), 5)
  await expect(stream.turn).rejects.toMatchObject({ code: 'CANCELLED' })
  expect(second.requests).toHaveLength(0)
})

test('a failure that came of an abort is not taken for one of the vendor', async () => {
  const second = scripted([says('no')])
  const first = scripted(
    ({ signal }) =>
      new Promise((_, reject) => {
        const broken = { code: 'NETWORK_ERROR', provider: 'one', modality: 'llm' } as const
        signal.addEventListener('abort', () => reject(new UPPError('reset', broken)))
      }),
  )
  const stream = llm({ model: fallback([first, second]) }).stream('Hi')
  setTimeout(() => stream.abort(), 5)
  await expect(stream.turn).rejects.toMatchObject({ code: 'CANCELLED' })
  await new Promise((resolve) => setTimeout(resolve, 2))
  expect(second.requests).toHaveLength(0)
})

test('capabilities are those that any member has', () => {
  const model = fallback([
    scripted([], { capabilities: { videoInput: false, tools: false } }),
    scripted([], { capabilities: { audioInput: false, tools: false } }),
  ])
  expect(llm({ model }).capabilities).toMatchObject({
    tools: false,
    videoInput: true,
    audioInput: true,
  })
  expect(model.provider.handlers.llm?.capabilities.videoInput).toBe(true)
  expect(model.provider.handlers.embedding).toBeUndefined()
})

test.each(Object.keys(scripted([]).provider.handlers.llm!.capabilities))(
  'UPP-125 UPP-167 a fallback lacks %s only if all members lack it',
  (name) => {
    const [all, less] = [scripted([]), scripted([], { capabilities: { [name]: false } })]
    for (const [members, has] of [
      [[all, less], true],
      [[less, all], true],
      [[less, less], false],
    ] as const) {
      const model = fallback(members)
      const expected = { ...llm({ model: all }).capabilities, [name]: has }
      expect(llm({ model }).capabilities).toEqual(expected)
      expect(model.provider.handlers.llm?.capabilities).toEqual(expected)
    }
  },
)

describe('what one member cannot take', () => {
  const pdf: DocumentBlock = {
    type: 'document',
    source: { type: 'base64', data: 'JVBERi0=' },
    mimeType: 'application/pdf',
    title: 'plan.pdf',
  }
  const blind = (step = says('From text.')) =>
    scripted(() => step, { provider: 'text', capabilities: { documentInput: false } })
  const seeing = (step = says('I see.')) => scripted(() => step, { provider: 'seeing' })

  test.each([false, true])('is asked of those that can, streaming: %s', async (streaming) => {
    const [text, other] = [blind(), seeing()]
    for (const members of [
      [text, other],
      [other, text],
    ]) {
      const instance = llm({ model: fallback(members) })
      const turn = await (streaming ? instance.stream(pdf).turn : instance.generate(pdf))
      expect(turn.response.text).toBe('I see.')
      // Only a member that comes before the one that answered is worth a warning.
      expect(turn.warnings.map(({ message }) => message)).toEqual(
        members[0] === text
          ? ['text/script was not asked: The provider "text" does not support document input.']
          : [],
      )
    }
    expect(text.requests).toEqual([])
  })

  test('is an error if nobody can, and if those that can fail', async () => {
    const refused = llm({ model: fallback([blind(), blind()]) }).generate(pdf)
    await expect(refused).rejects.toMatchObject({ code: 'INVALID_REQUEST' })
    const text = blind()
    const failed = llm({ model: fallback([seeing(failing('RATE_LIMITED')), text]) }).generate(pdf)
    await expect(failed).rejects.toMatchObject({ code: 'RATE_LIMITED' })
    expect(text.requests).toEqual([])
  })

  test('stays with the member that can for a whole tool loop', async () => {
    const text = blind()
    const other = scripted([calls('now', {}), says('Done.')])
    const now = { name: 'now', description: '', parameters: {}, run: () => 'noon' }
    await llm({ model: fallback([text, other]), tools: [now] }).generate(pdf)
    expect([text.requests.length, other.requests.length]).toEqual([0, 2])
  })

  test('is a placeholder in the history, once no member that can is left', async () => {
    const [text, other] = [blind(), seeing()]
    const history = [new UserMessage([pdf, { type: 'text', text: 'Sum it up.' }]), new AssistantMessage('A plan.')] // prettier-ignore
    const whole = await llm({ model: fallback([text, other]) }).generate(history, 'And now?')
    expect([whole.response.text, whole.warnings]).toEqual(['I see.', []])
    const model = fallback([seeing(failing('PROVIDER_ERROR')), text])
    const turn = await llm({ model }).generate(history, 'And now?')
    expect(turn.response.text).toBe('From text.')
    expect(text.requests[0]!.messages[0]).toMatchObject({
      content: [
        { type: 'text', text: '[document "plan.pdf", application/pdf: not shown]' },
        { type: 'text', text: 'Sum it up.' },
      ],
    })
    expect(turn.warnings.map(({ code }) => code)).toEqual(['model_fallback', 'unsupported_block'])
  })
})

test('message_start names the model that answers even if its answer does not', async () => {
  const silent = emits(
    { type: 'message_start', index: 0, delta: { provider: undefined, model: undefined } as never },
    { type: 'message_stop', index: 0, delta: { stopReason: 'end_turn', usage: zeroUsage } },
  )
  const member = scripted(() => silent, { provider: 'one', modelId: 'a' })
  const events: StreamEvent[] = []
  for await (const event of llm({ model: fallback([member]) }).stream('Hi')) events.push(event)
  const [start] = events
  expect(start).toMatchObject({ delta: { provider: 'one', model: 'a' } })
})

test('a tool loop goes on with whoever is left, metadata keeps its real namespace', async () => {
  const first = scripted([calls('now', {}), failing('PROVIDER_ERROR')], { provider: 'one' })
  const second = scripted([says('Noon.', { metadata: { two: { native: 1 } } })], {
    provider: 'two',
  })
  const now = { name: 'now', description: '', parameters: { type: 'object' }, run: () => '12:00' }
  const turn = await llm({ model: fallback([first, second]), tools: [now] }).generate('Time?')
  expect(turn.response.content[0]?.metadata).toEqual({ two: { native: 1 } })
  expect(second.requests[0]?.messages.map(({ type }) => type)).toEqual([
    'user',
    'assistant',
    'tool_result',
  ])
})

describe('what is sent', () => {
  test('params and config of a member are merged over those of the call', async () => {
    const model = scripted([says('x')])
    const member = { model, params: { top_k: 1 }, config: { apiKey: 'sk-member' } }
    const options = { params: { top_k: 9, seed: 2 }, config: { timeout: 5 } }
    await llm({ model: fallback([member]), ...options }).generate('Hi')
    const [request] = model.requests
    expect(request?.params).toEqual({ top_k: 1, seed: 2 })
    expect(request?.config.timeout).toBe(5)
    expect(JSON.stringify(request?.config)).not.toContain('sk-member')
  })

  test('a key of the call never reaches models of several vendors', async () => {
    const one = scripted([says('x')], { provider: 'one' })
    const two = scripted([says('x')], { provider: 'two' })
    const mixed = llm({ model: fallback([one, two]), config: { apiKey: 'sk-one' } })
    await expect(mixed.generate('Hi')).rejects.toMatchObject({ code: 'INVALID_REQUEST' })
    expect([...one.requests, ...two.requests]).toEqual([])
  })
})

test('a fallback over nothing is refused', () => {
  expect(() => fallback([])).toThrow(UPPError)
})

/** An embedding and image model that answers from a list. */
function vectors(name: string, answers: readonly (number | ErrorCode)[]) {
  let count = 0
  const next = (): number => {
    const answer = answers[count++] ?? 0
    if (typeof answer === 'number') return answer
    throw new UPPError('no', { code: answer, provider: name, modality: 'embedding' })
  }
  const provider = createProvider({
    name,
    embedding: {
      maxBatchSize: name === 'one' ? 2 : 3,
      imageInput: false,
      bind: ({ modelId }) => ({
        modelId,
        provider: name,
        async embed({ inputs }) {
          const value = next()
          const embeddings = inputs.map((_, index) => ({ vector: [value], dimensions: 1, index }))
          return { embeddings, usage: { totalTokens: 1 }, metadata: { [name]: { n: 1 } } }
        },
      }),
    },
    image: {
      bind: ({ modelId }) => ({
        modelId,
        provider: name,
        capabilities: { generate: true, streaming: true, edit: name === 'one' },
        generate: async () => ({ images: Array.from({ length: next() }, picture) }),
        async *stream() {
          const length = next()
          for (let index = 0; index < length; index++)
            yield { type: 'image' as const, index, image: picture() }
          yield { type: 'end' as const }
        },
      }),
    },
  })
  return provider('m')
}

const picture = () => ({ image: Image.fromBytes(new Uint8Array([1]), 'image/png') })

describe('embeddings and images', () => {
  test('another model embeds, with batches that all of them take', async () => {
    const model = fallback([vectors('one', ['RATE_LIMITED', 1, 1]), vectors('two', [2, 2])])
    const result = await embedding({ model }).embed(['a', 'b', 'c'], { concurrency: 2 })
    // Three inputs are two batches of at most two; both come from the model that answered first.
    expect(result.embeddings.map(({ vector }) => vector[0])).toEqual([2, 2, 2])
    expect(result.metadata?.['fallback']).toMatchObject({ provider: 'two', model: 'm' })
  })

  test('UPP-156 UPP-133 the metadata of the member stays beside the report', async () => {
    const model = fallback([vectors('one', ['RATE_LIMITED']), vectors('two', [2])])
    const { metadata } = await embedding({ model }).embed('a')
    expect(metadata).toEqual({
      two: { n: 1 },
      fallback: { provider: 'two', model: 'm', warnings: ['one/m failed with RATE_LIMITED.'] },
    })
  })

  test('a later batch never comes from another model', async () => {
    const model = fallback([vectors('one', [1, 'TIMEOUT']), vectors('two', [2, 2])])
    await expect(embedding({ model }).embed(['a', 'b', 'c'])).rejects.toMatchObject({
      code: 'TIMEOUT',
    })
  })

  describe('vectors of two models', () => {
    const asking = (...members: MemberInput[]) => embedding({ model: fallback(members) })
    const config = { apiKey: 'k', retryStrategy: new NoRetry() }
    const down = { ...config, fetch: async () => Response.json({}, { status: 500 }) }
    const sent: string[] = []
    const up = {
      ...config,
      fetch: async (url: string) => {
        sent.push(url)
        return Response.json({ data: [{ index: 0, embedding: [1, 2] }], usage: {} })
      },
    }

    test.each<[string, MemberInput[]]>([
      ['names', [openai('text-embedding-3-small'), openai('text-embedding-3-large')]],
      ['vendors', [openai('text-embedding-3-small'), google('gemini-embedding-001')]],
      ['dimensions', [{ model: openai('e'), params: { dimensions: 512 } }, { model: openai('e') }]],
    ])('are refused at definition: different %s', (_, members) => {
      expect(() => asking(...members)).toThrow(
        expect.objectContaining({
          code: 'INVALID_REQUEST',
          hint: expect.stringContaining('mixVectors'),
        }),
      )
      expect(() => embedding({ model: fallback(members, { mixVectors: true }) })).not.toThrow()
    })

    test('are refused before the second is asked, if its name says nothing', async () => {
      const members = [
        { model: openai('text-embedding-3-small'), config: down },
        { model: azureOpenai('search'), config: { ...up, baseUrl: 'http://azure.test' } },
      ]
      await expect(asking(...members).embed('a')).rejects.toMatchObject({
        code: 'INVALID_REQUEST',
        message: expect.stringContaining('azure-openai/search'),
      })
      expect(sent).toEqual([])
      const mixed = embedding({ model: fallback(members, { mixVectors: true }) })
      expect((await mixed.embed('a')).embeddings[0]?.vector).toEqual([1, 2])
    })

    const ollamaUp = { ...config, fetch: async () => Response.json({ embeddings: [[1, 2]] }) }

    test('are not: the same model of another vendor, or with another key', async () => {
      const same = asking(
        { model: openai('nomic-embed-text'), config: down },
        { model: ollama('library/nomic-embed-text'), config: ollamaUp },
      )
      expect((await same.embed('a')).embeddings).toHaveLength(1)
      const keys = [down, { ...up, baseUrl: 'http://azure.test' }].map((config) => ({
        model: azureOpenai('search'),
        config: { baseUrl: 'http://down.test', ...config },
      }))
      expect((await asking(...keys).embed('a')).embeddings).toHaveLength(1)
    })
  })

  test('another model draws, waiting or streaming; editing needs all', async () => {
    const make = () =>
      image({ model: fallback([vectors('one', ['TIMEOUT']), vectors('two', [2])]) })
    expect((await make().generate('a cat')).images).toHaveLength(2)
    const streamed = await make().stream('a cat').result
    expect(streamed.images).toHaveLength(2)
    expect(streamed.metadata?.['fallback']).toMatchObject({
      provider: 'two',
      warnings: ['one/m failed with TIMEOUT.'],
    })
    expect(make().capabilities).toMatchObject({ generate: true, streaming: true, edit: false })
  })
})

test('embeddings of several models take what each of them takes', () => {
  const member = (
    name: string,
    maxBatchSize: number,
    imageInput: boolean,
    maxBatchTokens?: number,
  ) =>
    createProvider({
      name,
      embedding: {
        maxBatchSize,
        imageInput,
        ...(maxBatchTokens !== undefined && { maxBatchTokens }),
        bind: () => ({ modelId: 'm', provider: name, embed: () => Promise.reject(new Error()) }),
      },
    })('m')
  const handlerOf = (...members: ModelReference[]) => fallback(members).provider.handlers.embedding
  expect(handlerOf(member('a', 9, true, 50), member('b', 5, true))).toMatchObject({
    maxBatchSize: 5,
    maxBatchTokens: 50,
    imageInput: true,
  })
  expect(handlerOf(member('a', 5, true), member('b', 9, false))).toMatchObject({
    maxBatchSize: 5,
    imageInput: false,
  })
})

test('a model that breaks off before it has said a word is replaced; after a call has begun it is not', async () => {
  const begun = (block: 'text' | 'reasoning' | 'tool_call') =>
    emits(
      { type: 'message_start', index: 0, delta: { provider: 'one' } },
      {
        type: 'content_block_start',
        index: 0,
        delta: { block, ...(block === 'tool_call' && { toolCallId: 'c', toolName: 'f' }) } as never,
      },
    )
  const ask = (block: 'text' | 'reasoning' | 'tool_call') => {
    const first = scripted([[begun(block), fails({ code: 'PROVIDER_ERROR', message: 'broken' })]])
    return llm({ model: fallback([first, scripted([says('second')])]) }).stream('x').turn
  }
  for (const block of ['text', 'reasoning'] as const)
    expect((await ask(block)).response.text).toBe('second')
  await expect(ask('tool_call')).rejects.toThrow('broken')
})

test('an answer that does not name its model gets the name of the member that gave it', async () => {
  const nameless = emits(
    { type: 'message_start', index: 0, delta: {} as never },
    { type: 'content_block_start', index: 0, delta: { block: 'text' } },
    { type: 'text_delta', index: 0, delta: { text: 'a' } },
    { type: 'content_block_stop', index: 0, delta: {} },
    {
      type: 'message_stop',
      index: 0,
      delta: {
        stopReason: 'end_turn',
        usage: { inputTokens: 1, outputTokens: 1, totalTokens: 2, cacheReadTokens: 0, cacheWriteTokens: 0 }, // prettier-ignore
      },
    },
  )
  const model = fallback([scripted([nameless], { provider: 'one', modelId: 'a' })])
  const events: StreamEvent[] = []
  for await (const event of llm({ model }).stream('x')) events.push(event)
  expect(events[0]).toMatchObject({ type: 'message_start', delta: { provider: 'one', model: 'a' } })
})

test('images of several models: what all can do, and the smallest number', async () => {
  const painter = (name: string, more: object, parts: object = {}) =>
    createProvider({
      name,
      image: {
        bind: () => ({
          modelId: 'm',
          provider: name,
          capabilities: { generate: true, streaming: false, edit: false, ...more },
          generate: async () => ({ images: [picture()], metadata: { [name]: { n: 1 } } }),
          ...parts,
        }),
      },
    })('m')
  const edits = { edit: async () => ({ images: [picture(), picture()] }) }
  const capabilitiesOf = (...members: ModelReference[]) =>
    image({ model: fallback(members) }).capabilities
  expect(capabilitiesOf(painter('a', { maxImages: 4 }), painter('b', { maxImages: 2 }))).toEqual({
    generate: true,
    streaming: false,
    edit: false,
    maxImages: 2,
  })
  const both = [painter('a', { edit: true }, edits), painter('b', { edit: true }, edits)]
  expect(capabilitiesOf(...both)).toMatchObject({ edit: true })
  expect(capabilitiesOf(...both).maxImages).toBeUndefined()
  // A model that says it can, but has no function for it, cannot.
  expect(capabilitiesOf(both[0]!, painter('b', { edit: true }))).toMatchObject({ edit: false })
  expect(capabilitiesOf(painter('a', { streaming: true }))).toMatchObject({ streaming: false })
  const edited = await image({ model: fallback(both) }).edit({
    prompt: 'x',
    image: picture().image,
  })
  expect(edited.images).toHaveLength(2)
  expect(edited.metadata?.['fallback']).toMatchObject({ provider: 'a', model: 'm' })
})

test('a combination has a vendor format only if all its members have the same', () => {
  const wireOf = (...members: ModelReference[]) => llm({ model: fallback(members) }).model.wire
  expect(wireOf(anthropic('a'), anthropic('b'))).toBe('anthropic-messages')
  expect(wireOf(anthropic('a'), openai('b'))).toBeUndefined()
  expect(wireOf(scripted([]), anthropic('a'))).toBeUndefined()
})

test('warnings of the answer itself stay beside those of the fallback', async () => {
  const usage = { inputTokens: 1, outputTokens: 1, totalTokens: 2, cacheReadTokens: 0, cacheWriteTokens: 0 } // prettier-ignore
  const own = { code: 'own', message: 'mine' }
  const warned = emits(
    { type: 'message_start', index: 0, delta: { provider: 'two' } },
    { type: 'content_block_start', index: 0, delta: { block: 'text' } },
    { type: 'text_delta', index: 0, delta: { text: 'a' } },
    { type: 'content_block_stop', index: 0, delta: {} },
    { type: 'message_stop', index: 0, delta: { stopReason: 'end_turn', usage, warnings: [own] } },
  )
  for (const streaming of [true, false]) {
    const model = fallback([scripted([failing('RATE_LIMITED')]), scripted([warned])])
    const { warnings } = await ask(model, streaming)
    expect(warnings.map(({ code }) => code)).toEqual(['model_fallback', 'own'])
  }
})

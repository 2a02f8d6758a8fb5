import { type } from 'arktype'
import { toStandardJsonSchema } from '@valibot/to-json-schema'
import * as v from 'valibot'
import { describe, expectTypeOf, test } from 'vitest'
import { z } from 'zod'
import type { EventDelta, StreamEvent } from './contract/event.ts'
import { UPPError } from './contract/error.ts'
import type { Unchecked } from './contract/structure.ts'
import { jsonSchema } from './json-schema.ts'
import { llm, type LLMInstance, type LLMOptions } from './llm.ts'
import { AssistantMessage, UserMessage, type Message } from './contract/message.ts'
import type { ParsedEventDelta, ParsedStreamEvent } from './middleware/parsed-object.ts'
import { says, scripted } from './testing/index.ts'
import type { Tool } from './contract/tool.ts'
import { partials } from './turn/batch-reader.ts'

const model = scripted([says('{}')])

interface Person {
  name: string
  age?: number | undefined
}

describe('turn.data', () => {
  test('with validate it is what the schema accepts, for Zod, ArkType and Valibot', async () => {
    const zod = z.object({ name: z.string(), age: z.number().optional() })
    const turn = await llm({ model, structure: zod, validate: true }).generate('x')
    expectTypeOf(turn.data).toEqualTypeOf<Person>()
    turn.data.name.toUpperCase()

    const streamed = await llm({ model, structure: zod, validate: true }).stream('x').turn
    expectTypeOf(streamed.data).toEqualTypeOf<Person>()

    const ark = await llm({
      model,
      structure: type({ name: 'string' }),
      validate: true,
    }).generate('x')
    expectTypeOf(ark.data).toEqualTypeOf<{ name: string }>()

    const structure = toStandardJsonSchema(v.object({ name: v.string() }))
    const fromValibot = await llm({ model, structure, validate: true }).generate('x')
    expectTypeOf(fromValibot.data).toEqualTypeOf<{ name: string }>()
  })

  test('without validate it is unchecked, and cannot be used before it is parsed', async () => {
    const structure = z.object({ name: z.string() })
    const turn = await llm({ model, structure }).generate('x')
    expectTypeOf(turn.data).toEqualTypeOf<Unchecked<{ name: string }>>()
    // @ts-expect-error nothing says that it has a name
    void turn.data?.name
    expectTypeOf(structure.parse(turn.data)).toEqualTypeOf<{ name: string }>()
    const isValid: boolean = Math.random() > 0.5
    const perhaps = await llm({ model, structure, validate: isValid }).generate('x')
    expectTypeOf(perhaps.data).toEqualTypeOf<Unchecked<{ name: string }>>()
  })

  test('is the input of a transforming schema, because nothing is transformed', async () => {
    const structure = z.object({ when: z.string().transform((text) => new Date(text)) })
    const turn = await llm({ model, structure, validate: true }).generate('x')
    expectTypeOf(turn.data).toEqualTypeOf<{ when: string }>()
  })

  test('is unknown for raw JSON Schema and without a structure', async () => {
    const structure = { type: 'object', properties: { name: { type: 'string' } } }
    const turn = await llm({ model, structure }).generate('x')
    expectTypeOf(turn.data).toEqualTypeOf<unknown>()
    const plain = await llm({ model }).generate('x')
    expectTypeOf(plain.data).toEqualTypeOf<unknown>()
  })

  test('follows with()', () => {
    const base = llm({ model, structure: z.object({ a: z.string() }), validate: true })
    expectTypeOf(base.with({ system: 's' })).toEqualTypeOf<LLMInstance<{ a: string }>>()
    const structure = z.object({ b: z.number() })
    const other = base.with({ structure, validate: true })
    expectTypeOf(other).toEqualTypeOf<LLMInstance<{ b: number }>>()
    const unchecked = base.with({ structure })
    expectTypeOf(unchecked).toEqualTypeOf<LLMInstance<Unchecked<{ b: number }>>>()
  })

  test('the text of the answer is text, whole and streamed', async () => {
    const turn = await llm({ model }).generate('x')
    expectTypeOf(turn.text).toEqualTypeOf<string>()
    expectTypeOf(llm({ model }).stream('x').textStream).toEqualTypeOf<AsyncIterable<string>>()
  })
})

test('partials are the data with every member optional, at every depth, without a cast', async () => {
  const structure = z.object({ a: z.object({ b: z.array(z.object({ c: z.number() })) }) })
  for await (const partial of partials(llm({ model, structure }).stream('x'))) {
    expectTypeOf(partial.a?.b?.[0]?.c).toEqualTypeOf<number | undefined>()
    // @ts-expect-error nothing has to be there yet
    void partial.a.b
  }
  for await (const partial of partials(llm({ model, structure, validate: true }).stream('x')))
    expectTypeOf(partial.a?.b?.[0]?.c).toEqualTypeOf<number | undefined>()
  for await (const partial of partials(llm({ model, structure: {} }).stream('x')))
    expectTypeOf(partial).toEqualTypeOf<unknown>()
})

test('jsonSchema gives raw JSON Schema the type that the caller says', async () => {
  const structure = jsonSchema<Person>({ type: 'object' })
  const turn = await llm({ model, structure, validate: true }).generate('x')
  expectTypeOf(turn.data).toEqualTypeOf<Person>()
})

test('issues of an error are typed', () => {
  const error = new UPPError('x', { code: 'INVALID_RESPONSE', provider: 'p', modality: 'llm' })
  expectTypeOf(error.issues?.[0]?.pointer).toEqualTypeOf<string | undefined>()
})

test('generate and stream take strings, messages, blocks, histories and threads', () => {
  const instance = llm({ model })
  const block = { type: 'text', text: 'x' } as const
  const messages: Message[] = []
  const thread = { id: 't', messages: messages as readonly Message[] }
  void instance.generate('x')
  void instance.generate('x', block, new UserMessage('y'))
  void instance.generate(messages, 'x')
  void instance.generate(thread, 'x', block)
  void instance.stream(thread).turn
  // @ts-expect-error a number is no input
  void instance.generate(42)
  // @ts-expect-error a history is a list of messages
  void instance.generate([42], 'x')
  // @ts-expect-error options are not an input: a signal goes through with({ signal })
  void instance.generate('x', { signal: AbortSignal.abort() })
})

test('a tool is any object of its shape; what its run takes is its own business', () => {
  const tool = {
    name: 'weather',
    description: 'Tells the weather.',
    parameters: { type: 'object' },
    run: ({ city }: { city: string }, { signal }: { signal: AbortSignal }) =>
      `${city} ${signal.aborted}`,
  }
  expectTypeOf(tool).toExtend<Tool>()
  expectTypeOf({ model, tools: [tool] }).toExtend<LLMOptions>()
  // @ts-expect-error a tool without run is none
  llm({ model, tools: [{ name: 'x', description: '', parameters: {} }] })
})

test('UPP-111 a base delta has no parsed field', () => {
  expectTypeOf<EventDelta>().not.toHaveProperty('parsed')
  type WithParsed<Delta> = Delta extends unknown
    ? 'parsed' extends keyof Delta
      ? Delta
      : never
    : never
  expectTypeOf<WithParsed<StreamEvent['delta']>>().toBeNever() // of no event
  const read = (event: StreamEvent): unknown => {
    // @ts-expect-error the extended type must be asked for
    return event.delta.parsed
  }
  expectTypeOf(read).returns.toBeUnknown()
})

test('UPP-110 behind the middleware the extended types have it', () => {
  const read = (event: StreamEvent): unknown => (event as ParsedStreamEvent).delta.parsed
  expectTypeOf(read).returns.toBeUnknown()
  expectTypeOf<ParsedStreamEvent>().toExtend<StreamEvent>()
  expectTypeOf<ParsedEventDelta['parsed']>().toBeUnknown()
})

test('an assistant message holds no binary block', () => {
  // @ts-expect-error binary is for users only (UPP §6.5)
  void new AssistantMessage([{ type: 'binary', data: new Uint8Array(), mimeType: 'a/b' }])
})

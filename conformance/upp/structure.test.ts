import {
  llm,
  type StreamEvent,
  type Tool,
  type Turn,
  type ModelReference,
  type Params,
} from '@skein/ai'
import { groq } from '@skein/ai/groq'
import { ollama } from '@skein/ai/ollama'
import { calls, says, scripted, stops } from '@skein/ai/testing'
import { toStandardJsonSchema } from '@valibot/to-json-schema'
import { type } from 'arktype'
import { readFileSync } from 'node:fs'
import * as v from 'valibot'
import { expect, test } from 'vitest'
import { z } from 'zod'

const person = { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] }

const failure = (promise: Promise<unknown>): Promise<{ code?: string; turn?: Turn }> =>
  promise.then(
    () => ({}),
    (error: unknown) => error as { code?: string; turn?: Turn },
  )

test('UPP-124 UPP-089 UPP-082 turn.data holds the parsed answer; it streams as an object', async () => {
  const steps = [says('{"name": "Ann"}')]
  expect((await llm({ model: scripted(steps), structure: person }).generate('x')).data).toEqual({
    name: 'Ann',
  })
  const stream = llm({ model: scripted(steps), structure: person }).stream('x')
  const types: string[] = []
  let text = ''
  for await (const event of stream) {
    types.push(event.type)
    if (event.type === 'object_delta') text += event.delta.text
    if (event.type === 'content_block_start') expect(event.delta.block).toBe('object')
  }
  expect(types).not.toContain('text_delta')
  expect(text).toBe('{"name": "Ann"}')
  const turn = await stream.turn
  expect(turn.data).toEqual({ name: 'Ann' })
  expect(turn.response.content).toEqual([{ type: 'text', text }])
})

test('UPP-124 tools may run before the structured answer', async () => {
  const find: Tool = { name: 'find', description: '', parameters: {}, run: () => 'Ann' }
  const model = scripted([[says('Looking.'), calls('find')], says('{"name":"Ann"}')])
  const turn = await llm({ model, tools: [find], structure: person }).generate('x')
  expect(turn.data).toEqual({ name: 'Ann' })
  expect(model.requests.every(({ structure }) => structure === person)).toBe(true)
})

test('UPP-125 structure without the capability is refused before any request', () => {
  const model = scripted([says('{}')], { capabilities: { structuredOutput: false } })
  const tools: Tool[] = [{ name: 'find', description: '', parameters: {}, run: () => 1 }]
  for (const more of [{}, { tools }, { system: 'Be brief.' }])
    expect(() => llm({ model, structure: person, ...more })).toThrow(
      expect.objectContaining({ code: 'INVALID_REQUEST', provider: 'scripted', modality: 'llm' }),
    )
  expect(model.requests).toHaveLength(0)
})

test('UPP-126 UPP-003 answers are not validated: off-schema JSON passes', async () => {
  for (const text of ['{"other": 1}', '[1, 2]', '"just text"', 'null', '0']) {
    const { data } = await llm({ model: scripted([says(text)]), structure: person }).generate('x')
    expect(data).toEqual(JSON.parse(text))
  }
  const { dependencies } = JSON.parse(
    readFileSync(new URL('../../packages/ai/package.json', import.meta.url), 'utf8'),
  ) as { dependencies: object }
  expect(Object.keys(dependencies)).toEqual(['@skein/base'])
})

test('UPP-126 members beyond the schema stay, also next to a null for an absent one', async () => {
  const structure = { ...person, required: [], additionalProperties: false }
  for (const text of ['{"name":null,"other":{"a":null}}', '{"other":{"a":null}}']) {
    const { data } = await llm({ model: scripted([says(text)]), structure }).generate('x')
    expect(data).toEqual({ other: { a: null } })
  }
})

test('UPP-126 without `validate` nothing is repaired that is JSON', async () => {
  for (const text of ['"just text"', '[]', '{"name":7}']) {
    const model = scripted([says(text), says('{"name":"Ann"}')])
    const { data } = await llm({ model, structure: person, repair: 2 }).generate('x')
    expect(data).toEqual(JSON.parse(text))
    expect(model.requests).toHaveLength(1)
  }
})

test('UPP-127 an answer that is not JSON is INVALID_RESPONSE and carries the turn', async () => {
  const around = ['Here: {"name":"Ann"}', '{"name":"Ann"} There.', '```json\n{"name":"Ann"}\n```']
  for (const text of ['{"name": "An', 'I would rather not.', '', ...around]) {
    const step = [says(text), stops(text.startsWith('{') ? 'max_tokens' : undefined)]
    const instance = llm({ model: scripted([step, step]), structure: person })
    for (const asking of [instance.generate('x'), instance.stream('x').turn]) {
      const error = await failure(asking)
      expect(error.code).toBe('INVALID_RESPONSE')
      expect(error.turn?.response.text).toBe(text)
      expect(error.turn?.cycles).toBe(1)
      expect('data' in error.turn!).toBe(false)
    }
  }
})

test('UPP-082 open calls have no data, and no complaint either', async () => {
  const model = scripted([[says('Looking.'), calls('find')]])
  const find: Tool = { name: 'find', description: '', parameters: {}, run: () => 1 }
  const toolStrategy = { maxIterations: 0 }
  const turn = await llm({ model, tools: [find], structure: person, toolStrategy }).generate('x')
  expect('data' in turn).toBe(false)
})

test.each([
  ['Zod', z.object({ name: z.string() })],
  ['ArkType', type({ name: 'string' })],
  ['Valibot', toStandardJsonSchema(v.object({ name: v.string() }))],
])('UPP-002 a %s schema is sent as JSON Schema, whole', async (_, structure) => {
  const model = scripted([says('{"name":"Ann"}')])
  await llm({ model, structure }).generate('x')
  expect(model.requests[0]?.structure).toMatchObject(person)
})

test('UPP-002 a tool written with a schema object is sent as JSON Schema and not validated', async () => {
  const seen: unknown[] = []
  const greet = {
    name: 'greet',
    description: 'Greets.',
    parameters: z.object({ name: z.string() }) as unknown as Tool['parameters'],
    run: (args: unknown) => void seen.push(args),
  }
  const model = scripted([calls('greet', { name: 4 }), says('ok')])
  await llm({ model, tools: [greet] }).generate('x')
  expect(model.requests[0]?.tools[0]).toMatchObject({ name: 'greet', parameters: person })
  expect(seen).toEqual([{ name: 4 }])
})

test('a schema that cannot be written as JSON Schema is refused at construction', () => {
  const make =
    (structure: object): unknown =>
    () =>
      llm({ model: scripted([]), structure: structure as never })
  for (const structure of [
    v.object({ a: v.string() }),
    { a: z.string() },
    z.object({ a: z.date() }),
  ])
    expect(make(structure)).toThrow(expect.objectContaining({ code: 'INVALID_REQUEST' }))
})

test('events without structure stay text', async () => {
  const types: StreamEvent['type'][] = []
  for await (const event of llm({ model: scripted([says('{}')]) }).stream('x'))
    types.push(event.type)
  expect(types).toContain('text_delta')
  expect(types).not.toContain('object_delta')
})

test.each([
  [groq('m'), 'response_format'],
  [ollama('m'), 'format'],
] as const)(
  'UPP-151 UPP-124 what the caller set instead of the structure is sent, be it null',
  async (model, field) => {
    for (const given of [null, { type: 'own' }, 'json']) {
      let body: Record<string, unknown> = {}
      const fetch = async (_: string, init: RequestInit): Promise<Response> => {
        body = JSON.parse(init.body as string) as Record<string, unknown>
        return new Response('', { status: 400 })
      }
      const config = { apiKey: 'key-0123456789', fetch }
      const params = { [field]: given } as Params
      await llm({ model: model as ModelReference, config, params, structure: person })
        .generate('x')
        .catch(() => {}) // only the request counts
      expect(body[field]).toEqual(given)
    }
  },
)

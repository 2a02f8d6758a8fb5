import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { isUPPError } from '../contract/error.ts'
import type { Middleware } from '../contract/middleware.ts'
import { llm } from '../llm.ts'
import { jsonSchema } from '../json-schema.ts'
import { calls, says, scripted, stops } from '../testing/index.ts'
import { partials } from './batch-reader.ts'

const Person = z.object({ name: z.string(), age: z.number().optional() })
const raw = { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] }

const failure = async (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => 'no failure',
    (error: unknown) => error,
  )

describe('validate', () => {
  test('data that does not fit is an error with pointer, message and turn', async () => {
    for (const structure of [Person, jsonSchema(raw)]) {
      const instance = llm({
        model: scripted([says('{"name":5}'), says('{"name":5}')]),
        structure,
        validate: true,
      })
      for (const asking of [instance.generate('x'), instance.stream('x').turn]) {
        const error = await failure(asking)
        expect(error).toMatchObject({
          code: 'INVALID_RESPONSE',
          provider: 'scripted',
          message: expect.stringContaining('/name'),
          issues: [{ pointer: '/name', message: expect.stringMatching(/string/) }],
        })
        if (!isUPPError(error)) throw new Error('not a UPPError')
        expect(error.turn?.response.text).toBe('{"name":5}')
        expect(error.turn?.usage.totalTokens).toBeGreaterThan(0)
        expect('data' in error.turn!).toBe(false)
      }
    }
  })

  test('data that fits is as the model said it, not transformed', async () => {
    const structure = z.object({ when: z.string().transform((text) => new Date(text)) })
    const model = scripted([says('{"when":"2026-01-01"}')])
    const { data } = await llm({ model, structure, validate: true }).generate('x')
    expect(data).toEqual({ when: '2026-01-01' })
  })

  test('a schema with asynchronous checks is awaited', async () => {
    const structure = z.object({ a: z.string().refine(async (text) => text === 'yes', 'say yes') })
    const model = scripted([says('{"a":"yes"}'), says('{"a":"no"}')])
    const instance = llm({ model, structure, validate: true })
    expect((await instance.generate('x')).data).toEqual({ a: 'yes' })
    expect(await failure(instance.generate('x'))).toMatchObject({
      issues: [{ pointer: '/a', message: 'say yes' }],
    })
  })

  test('UPP-030 UPP-035 a schema that throws is INVALID_REQUEST with the error as its cause', async () => {
    const thrown = new TypeError('no database')
    const checks = [
      () => {
        throw thrown
      },
      () => Promise.reject(thrown),
    ]
    for (const validate of checks) {
      const structure = { '~standard': { ...jsonSchema(raw)['~standard'], validate } }
      const model = scripted([says('{}'), says('{}')])
      const instance = llm({ model, structure, validate: true, repair: 1 })
      expect(await failure(instance.generate('x'))).toMatchObject({
        name: 'UPPError',
        code: 'INVALID_REQUEST',
        provider: 'scripted',
        cause: thrown,
      })
      expect(model.requests).toHaveLength(1)
    }
  })

  test('UPP-002 a schema that middleware puts in is sent as JSON Schema', async () => {
    const model = scripted([says('{"name":"Ada"}')])
    const choose: Middleware = {
      name: 'choose',
      onRequest: (context) => {
        context.request = { ...context.request, structure: Person as never }
      },
    }
    const turn = await llm({ model, middleware: [choose] }).generate('x')
    expect(model.requests[0]?.structure).toMatchObject({
      type: 'object',
      properties: { name: { type: 'string' } },
    })
    expect(turn.data).toEqual({ name: 'Ada' })
  })

  test('is per call with with(), and off by default', async () => {
    const model = scripted([says('{}'), says('{}')])
    const instance = llm({ model, structure: Person })
    expect((await instance.generate('x')).data).toEqual({})
    expect(await failure(instance.with({ validate: true }).generate('x'))).toMatchObject({
      issues: [{ pointer: '/name' }],
    })
  })

  test('raw JSON Schema and no schema are refused at once', () => {
    const model = scripted([])
    for (const structure of [raw, undefined])
      expect(() => llm({ model, structure, validate: true })).toThrow(
        expect.objectContaining({
          code: 'INVALID_REQUEST',
          hint: expect.stringContaining('json-schema'),
        }),
      )
  })

  test('a check that throws is an error of the caller, with the turn', async () => {
    const structure = z.object({
      a: z.string().refine(() => {
        throw new Error('broken check')
      }),
    })
    const model = scripted([says('{"a":"x"}')])
    const error = await failure(llm({ model, structure, validate: true, repair: 3 }).generate('x'))
    expect(error).toMatchObject({ cause: { message: 'broken check' }, turn: { cycles: 1 } })
    expect(model.requests).toHaveLength(1)
  })

  test('open calls have no data to check', async () => {
    const find = { name: 'find', description: '', parameters: {}, run: () => 1 }
    const instance = llm({
      model: scripted([calls('find')]),
      tools: [find],
      toolStrategy: { maxIterations: 0 },
      structure: Person,
      validate: true,
    })
    expect('data' in (await instance.generate('x'))).toBe(false)
  })
})

describe('repair', () => {
  const bad = says('{"name":5}')
  const good = says('{"name":"Ann"}')

  test('the model is told what is wrong and asked again; usage adds up', async () => {
    for (const way of ['generate', 'stream'] as const) {
      const model = scripted([bad, says('no JSON'), good])
      const instance = llm({ model, structure: Person, validate: true, repair: 2 })
      const turn = await (way === 'generate' ? instance.generate('x') : instance.stream('x').turn)
      expect(turn.data).toEqual({ name: 'Ann' })
      expect(turn.cycles).toBe(3)
      expect(turn.usage.outputTokens).toBe(
        turn.usageByCycle.reduce((sum, { outputTokens }) => sum + outputTokens, 0),
      )
      expect(turn.messages.map(({ type }) => type)).toEqual([
        'user',
        'assistant',
        'user',
        'assistant',
        'user',
        'assistant',
      ])
      expect(model.requests[1]!.messages.at(-1)!.text).toMatch(/does not fit[^]*\/name: /)
      expect(model.requests[2]!.messages.at(-1)!.text).toMatch(/not JSON/)
      // The turn can be continued as any other.
      expect(model.requests[2]!.messages).toHaveLength(5)
    }
  })

  test('ends with the last error when the repairs are used up', async () => {
    const model = scripted([bad, bad])
    const error = await failure(
      llm({ model, structure: Person, validate: true, repair: 1 }).generate('x'),
    )
    expect(error).toMatchObject({ issues: [{ pointer: '/name' }], turn: { cycles: 2 } })
    expect(model.requests).toHaveLength(2)
  })

  test('not after an answer that was cut off or refused', async () => {
    for (const reason of ['max_tokens', 'refusal', 'content_filter'] as const) {
      const model = scripted([[says('{"na'), stops(reason)], good])
      const error = await failure(llm({ model, structure: Person, repair: 5 }).generate('x'))
      expect(error).toMatchObject({ code: 'INVALID_RESPONSE' })
      expect(model.requests).toHaveLength(1)
    }
  })

  test('tools may run between', async () => {
    const find = { name: 'find', description: '', parameters: {}, run: () => 'Ann' }
    const model = scripted([bad, calls('find'), good])
    const turn = await llm({
      model,
      structure: Person,
      validate: true,
      repair: 1,
      tools: [find],
    }).generate('x')
    expect(turn.data).toEqual({ name: 'Ann' })
    expect(turn.toolExecutions).toHaveLength(1)
  })

  test('leaving the events during a repair aborts the call', async () => {
    const stream = llm({
      model: scripted([bad, good]),
      structure: Person,
      validate: true,
      repair: 1,
    }).stream('x')
    let starts = 0
    for await (const { type } of stream) if (type === 'message_start' && ++starts === 2) break
    expect(await failure(stream.turn)).toMatchObject({ code: 'CANCELLED' })
  })

  test('one inference of an agent is not repaired', async () => {
    const model = scripted([bad, good])
    const instance = llm({ model, structure: Person, validate: true, repair: 1 })
    const run = instance.infer((await llm({ model: scripted([good]) }).generate('x')).messages)
    expect(
      await failure(
        (async () => {
          for (;;) if ((await run.next()).done) return
        })(),
      ),
    ).toMatchObject({ issues: [{ pointer: '/name' }] })
    expect(model.requests).toHaveLength(1)
  })
})

describe('partials', () => {
  test('are the data so far, each more than the one before, without nulls for absent properties', async () => {
    const model = scripted([says('{"name":"Ann","age":null}')], { chunks: 1 })
    const stream = llm({ model, structure: Person }).stream('x')
    const seen: unknown[] = []
    for await (const partial of partials(stream)) seen.push(partial)
    expect(seen[0]).toEqual({})
    expect(seen).toContainEqual({ name: 'A' })
    expect(seen.at(-1)).toEqual({ name: 'Ann' })
    for (const partial of seen) expect(partial).not.toHaveProperty('age')
    expect((await stream.turn).data).toEqual({ name: 'Ann' })
  })

  test('begin again with a repaired answer', async () => {
    const model = scripted([says('{"name":5}'), says('{"name":"Ann"}')])
    const stream = llm({ model, structure: Person, validate: true, repair: 1 }).stream('x')
    let last: unknown
    for await (const partial of partials(stream)) last = partial
    expect(last).toEqual({ name: 'Ann' })
  })

  test('a failure of the call is thrown to their reader', async () => {
    const model = scripted([says('{"name":5}')])
    const stream = llm({ model, structure: Person, validate: true }).stream('x')
    const reading = async (): Promise<void> => {
      for await (const partial of partials(stream)) void partial
    }
    expect(await failure(reading())).toMatchObject({ issues: [{ pointer: '/name' }] })
  })
})

test('UPP-121 repairs do not count as rounds of tools', async () => {
  const ran: unknown[] = []
  const find = { name: 'find', description: '', parameters: {}, run: () => ran.push(1) }
  const model = scripted([says('no JSON'), calls('find'), says('{"name":"Ann"}')])
  const turn = await llm({
    model,
    tools: [find],
    structure: { type: 'object' },
    repair: 1,
    toolStrategy: { maxIterations: 1 },
  }).generate('x')
  expect(ran).toEqual([1])
  expect(turn.data).toEqual({ name: 'Ann' })
})

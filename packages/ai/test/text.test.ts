/** Text that every vendor accepts: nothing blank where it is refused, no half of a surrogate pair. */
import {
  AssistantMessage,
  llm,
  messageFromJSON,
  type Middleware,
  NoRetry,
  tool,
  ToolResultMessage,
  UserMessage,
} from '@skein/ai'
import { anthropic } from '@skein/ai/anthropic'
import { google } from '@skein/ai/google'
import { calls, says, scripted, vendorServer } from '@skein/ai/testing'
import type { JsonObject, JsonValue } from '@skein/base'
import { describe, expect, test } from 'vitest'
import { vendors, type VendorUnderTest } from './testing/vendors.ts'

const half = '😀'.slice(0, 1)
const repaired = '\uFFFD'

function instance({ model, prefix }: Pick<VendorUnderTest, 'model' | 'prefix'>) {
  const server = vendorServer([says('Hi'), says('Hi'), says('Hi')])
  const config = {
    fetch: server.fetch,
    baseUrl: `http://vendor.test${prefix}`,
    apiKey: 'k',
    retryStrategy: new NoRetry(),
  }
  return { server, bot: llm({ model, config }) }
}

describe('half of a surrogate pair', () => {
  test.each(vendors)(
    '$name: is repaired in what is sent, also in an old history',
    async (vendor) => {
      const { server, bot } = instance(vendor)
      const history = [
        new UserMessage(`u${half}`),
        new AssistantMessage(`a${half}`, [
          { toolCallId: 'c12345678', toolName: 'head', arguments: { x: half } },
        ]),
        new ToolResultMessage([
          { toolCallId: 'c12345678', toolName: 'head', result: { [`k${half}`]: `r${half}` } },
        ]),
      ]
      await bot.with({ system: `s${half}` }).generate(history, `now${half} \\ud83d`)
      const text = JSON.stringify(server.requests[0]!.body)
      expect(text).not.toMatch(/(?<!\\)\\ud[89a-f]/i)
      for (const part of ['u', 'a', 'r', 's', 'now']) expect(text).toContain(part + repaired)
      // Six characters that look like an escape are text of the person, and stay.
      expect(text).toContain('\\\\ud83d')
    },
  )

  test.each(vendors)('$name: is repaired in tools, params and what hooks set', async (vendor) => {
    let body = ''
    const fetch = async (_: string, init: RequestInit): Promise<Response> => {
      body = await new Response(init.body).text()
      return new Response('{}', { status: 400 })
    }
    const schema = { type: 'object', properties: { x: { description: half } } } as const
    const head = { name: 'head', description: `d${half}`, parameters: schema, run: () => '' }
    const hook: Middleware = {
      name: 'hook',
      onCycle: (request) => ({ ...request, system: `s${half}` }),
    }
    const params = { user: half }
    const config = { apiKey: 'k', fetch, retryStrategy: new NoRetry() }
    const bot = llm({ model: vendor.model, tools: [head], params, middleware: [hook], config })
    await expect(bot.generate('Hi')).rejects.toThrow('400')
    expect(body).toContain(`"d${repaired}"`)
    expect(body).toContain(`s${repaired}"`)
    expect(body).not.toMatch(/\\ud83d/i)
  })

  test('is repaired where it enters: messages, results, errors', async () => {
    expect(new UserMessage(half).text).toBe(repaired)
    expect(new UserMessage([{ type: 'text', text: half }]).text).toBe(repaired)
    const json = {
      id: '1',
      type: 'user',
      timestamp: '2026-01-01T00:00:00Z',
      content: [{ type: 'text', text: half }],
    }
    expect(messageFromJSON(json).text).toBe(repaired)
    const model = scripted([calls('head', {}), calls('fail', {}), says('ok')])
    const schema = { type: 'object', properties: {} }
    const turn = await llm({
      model,
      system: half,
      tools: [
        tool({
          name: 'head',
          description: '',
          parameters: schema,
          run: () => ({ [half]: ['done 😀'.slice(0, 6)] }),
        }),
        tool({
          name: 'fail',
          description: '',
          parameters: schema,
          run: () => {
            throw new Error(half)
          },
        }),
      ],
    }).generate('go')
    expect(turn.toolExecutions.map(({ result }) => result)).toEqual([
      { [repaired]: [`done ${repaired}`] },
      repaired,
    ])
    expect(model.requests[0]!.system).toBe(repaired)
  })
})

describe('a value that is thrown but is no error', () => {
  test.each<[unknown, string]>([
    [null, 'null was thrown.'],
    [undefined, 'undefined was thrown.'],
    [{ key: 'secret' }, 'An object that is not an error was thrown.'],
    [{ message: 'The disk is full.' }, 'The disk is full.'],
    [42, 'A number was thrown.'],
    [Symbol('x'), 'A symbol was thrown.'],
  ])('%o: the model reads %s', async (value, message) => {
    const model = scripted([calls('fail', {}), says('ok')])
    const fail = tool({
      name: 'fail',
      description: '',
      parameters: { type: 'object', properties: {} },
      run: () => {
        throw value
      },
    })
    const turn = await llm({ model, tools: [fail] }).generate('go')
    expect(turn.toolExecutions[0]).toMatchObject({ isError: true, result: message })
  })
})

describe('blank text', () => {
  const claude = { model: anthropic('claude-sonnet-4-5'), prefix: '/v1' } as const
  const texts = (body: JsonObject): JsonValue[] =>
    (body['messages'] as JsonObject[]).map(({ content }) => content!)

  test('never reaches Anthropic: user, assistant, result, system', async () => {
    const { server, bot } = instance(claude)
    const call = { toolCallId: 'c', toolName: 'find', arguments: {} }
    await bot.with({ system: ' \n' }).generate(
      [
        new UserMessage([
          { type: 'text', text: 'Hi' },
          { type: 'text', text: '\n' },
        ]),
        new AssistantMessage([{ type: 'text', text: '\n\n' }], [call]),
        new ToolResultMessage([
          {
            toolCallId: 'c',
            result: [
              { type: 'text', text: ' ' },
              { type: 'text', text: 'x' },
            ],
          },
        ]),
        new AssistantMessage('\n'),
        new UserMessage(' '),
        new AssistantMessage('', [{ ...call, toolCallId: 'd' }]),
        new ToolResultMessage([{ toolCallId: 'd', result: '\n' }]),
      ],
      'and?',
    )
    const { body } = server.requests[0]!
    expect(body).not.toHaveProperty('system')
    expect(texts(body)).toEqual([
      [{ type: 'text', text: 'Hi' }],
      [{ type: 'tool_use', id: 'c', name: 'find', input: {} }],
      [{ type: 'tool_result', tool_use_id: 'c', content: [{ type: 'text', text: 'x' }] }],
      [{ type: 'tool_use', id: 'd', name: 'find', input: {} }],
      [{ type: 'tool_result', tool_use_id: 'd' }],
      [{ type: 'text', text: 'and?' }],
    ])
  })

  test('a last message of nothing else is refused before it is sent, with a hint', async () => {
    const { server, bot } = instance(claude)
    const error = await bot
      .generate([new UserMessage('Hi'), new AssistantMessage('Yes?')], ' ')
      .catch((e: unknown) => e)
    expect(error).toMatchObject({
      code: 'INVALID_REQUEST',
      message: expect.stringContaining('blank'),
    })
    expect(server.requests).toHaveLength(0)
  })

  test('Gemini gets no empty part', async () => {
    const { server, bot } = instance({ model: google('gemini-3-pro'), prefix: '/v1beta' })
    await bot.generate(
      new UserMessage([
        { type: 'text', text: '' },
        { type: 'text', text: 'x' },
      ]),
    )
    expect(server.requests[0]!.body['contents']).toEqual([{ role: 'user', parts: [{ text: 'x' }] }])
  })
})

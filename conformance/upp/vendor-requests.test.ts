/** Requests that are written seldom: failed results, mapped ids and system prompts, for each vendor. */
import type { JsonObject } from '@skein/base'
import {
  AssistantMessage,
  ToolResultMessage,
  UserMessage,
  type LLMOptions,
  type Message,
  type ModelReference,
  type ToolCall,
} from '@skein/ai'
import { anthropic } from '@skein/ai/anthropic'
import { google } from '@skein/ai/google'
import { mistral } from '@skein/ai/mistral'
import { ollama } from '@skein/ai/ollama'
import { openai } from '@skein/ai/openai'
import { openaiCompatible } from '@skein/ai/openai-compatible'
import { describe, expect, test } from 'vitest'
import { lastOf, sentBody } from './support/sent-body.ts'

/** One call and its result. */
function round(result: unknown, { isError = false, id = 'call_1' } = {}): Message[] {
  const call: ToolCall = { toolCallId: id, toolName: 'look', arguments: {} }
  return [
    new UserMessage('go'),
    new AssistantMessage([], [call]),
    new ToolResultMessage([{ toolCallId: id, toolName: 'look', result, isError }]),
  ]
}

const chat = openaiCompatible({ name: 'local', baseUrl: 'https://x.test/v1' })
const responses = openai('m')

describe('results', () => {
  const texts = ['it broke', 'no error was found', 'errors: 2', 'Error: it broke', 'ERROR it broke', ''] // prettier-ignore
  const prefixed = (text: string): string => (/^error\b/i.test(text) ? text : `Error: ${text}`)
  const told: readonly [
    string,
    ModelReference,
    (body: JsonObject) => unknown,
    (text: string) => string,
  ][] = [
    // prettier-ignore
    ['Chat Completions', chat('m'), (body) => lastOf(body)['content'], prefixed],
    ['Responses', responses, (body) => lastOf(body)['output'], prefixed],
    ['Ollama', ollama('m'), (body) => lastOf(body)['content'], (text) => `Error: ${text}`],
  ]

  test.each(told)(
    'UPP-057 %s has no flag for a failed result: its text says so',
    async (_name, model, of, failed) => {
      for (const text of texts) {
        expect(of(await sentBody(model, round(text, { isError: true })))).toBe(failed(text))
        expect(of(await sentBody(model, round(text)))).toBe(text)
      }
    },
  )

  test('UPP-057 Google: objects are sent as they are, unless they have a member that the API reads', async () => {
    const responseOf = async (result: unknown, isError = false): Promise<unknown> => {
      const [part] = lastOf(await sentBody(google('m'), round(result, { isError })))['parts'] as JsonObject[] // prettier-ignore
      return (part!['functionResponse'] as JsonObject)['response']
    }
    expect(await responseOf({ a: 1 })).toEqual({ a: 1 })
    for (const result of [{ error: 'none' }, { output: 1 }, [1], 'text', 7, null])
      expect(await responseOf(result)).toEqual({ output: result })
    expect(await responseOf({ a: 1 }, true)).toEqual({ error: { a: 1 } })
  })

  test.each([
    ['openai', openai('m', { api: 'chat' }), 'x'.repeat(41)],
    ['mistral', mistral('m'), 'call_1'],
    ['Responses', responses, 'x'.repeat(65)],
    ['anthropic', anthropic('m'), 'call:1'],
  ])(
    'UPP-057 %s: an id that is refused is mapped alike in call and result',
    async (_, model, id) => {
      const text = JSON.stringify(await sentBody(model, round('ok', { id })))
      const ids = [...text.matchAll(/"(?:id|call_id|tool_call_id|tool_use_id)":"([^"]+)"/g)]
      expect(ids).toHaveLength(2)
      expect(new Set(ids.map(([, sent]) => sent)).size).toBe(1)
      expect(text).not.toContain(`"${id}"`)
    },
  )

  test('UPP-057 Responses: results of custom tools are items of their own, in every round', async () => {
    const native = (type: string) => ({ openai: { api: 'openai-responses', native: { type } } })
    const rounds = ['custom_tool_call', 'function_call', 'custom_tool_call'].flatMap(
      (type, index) => [
        new AssistantMessage([], [{ toolCallId: `c${index}`, toolName: 'x', arguments: { input: 'i' }, metadata: native(type) }]), // prettier-ignore
        new ToolResultMessage([{ toolCallId: `c${index}`, result: 'r' }]),
      ],
    )
    const { input } = await sentBody(responses, [new UserMessage('go'), ...rounds])
    expect((input as JsonObject[]).map(({ type }) => type)).toEqual([
      'message',
      'custom_tool_call',
      'custom_tool_call_output',
      'function_call',
      'function_call_output',
      'custom_tool_call',
      'custom_tool_call_output',
    ])
  })

  test('UPP-057 Ollama and Google: a stored result without a name has that of its call', async () => {
    const messages = round('ok')
    const stored = [...messages.slice(0, 2), new ToolResultMessage([{ toolCallId: 'call_1', result: 'ok' }])] // prettier-ignore
    expect(lastOf(await sentBody(ollama('m'), stored))['tool_name']).toBe('look')
    expect(JSON.stringify(lastOf(await sentBody(google('m'), stored)))).toContain('"name":"look"')
  })
})

describe('the system prompt', () => {
  const system = 'Be brief.'
  const hi = [new UserMessage('Hi')]

  test.each<[string, LLMOptions['params'] & object, unknown]>([
    [
      'blocks',
      { systemInstruction: { role: 'system', parts: [{ text: 'And kind.' }] } },
      { role: 'system', parts: [{ text: system }, { text: 'And kind.' }] },
    ],
    [
      'a text',
      { systemInstruction: 'And kind.' },
      { parts: [{ text: system }, { text: 'And kind.' }] },
    ],
    ['nothing', {}, { parts: [{ text: system }] }],
  ])('UPP-059 UPP-004 Google: before %s in params', async (_name, params, expected) => {
    // prettier-ignore
    const body = await sentBody(google('m'), hi, { system, params })
    expect(body['systemInstruction']).toEqual(expected)
    const alone = await sentBody(google('m'), hi, { params })
    expect(alone['systemInstruction']).toEqual(params['systemInstruction'])
  })

  test.each([
    [[{ type: 'text', text: 'And kind.', cache_control: { type: 'ephemeral' } }]],
    ['And kind.'],
  ])('UPP-059 UPP-004 Anthropic: before %j in params', async (given) => {
    const more = typeof given === 'string' ? [{ type: 'text', text: given }] : given
    const body = await sentBody(anthropic('m'), hi, { system, params: { system: given } })
    expect(body['system']).toEqual([{ type: 'text', text: system }, ...more])
  })

  test('UPP-059 UPP-004 Responses: instructions in params replace it', async () => {
    const body = await sentBody(responses, hi, { system, params: { instructions: 'Mine.' } })
    expect(body['instructions']).toBe('Mine.')
  })

  test.each(['system', 'developer'] as const)(
    'UPP-059 its role is that of the server: %s',
    async (systemRole) => {
      const local = openaiCompatible({ name: 'local', baseUrl: 'https://x.test/v1', dialect: { systemRole } }) // prettier-ignore
      const { messages } = await sentBody(local('m'), hi, { system })
      expect((messages as JsonObject[])[0]).toEqual({ role: systemRole, content: system })
    },
  )
})

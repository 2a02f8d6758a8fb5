import type { JsonObject } from '@skein/base'
import {
  AssistantMessage,
  llm,
  ToolResultMessage,
  UserMessage,
  type ModelReference,
  type ToolResult,
} from '@skein/ai'
import { describe, expect, test } from 'vitest'
import { stub } from './support/stub.ts'
import { vendors } from './support/vendors.ts'

const providers = new Map(vendors.map(({ name, provider }) => [name, provider]))
const modelOf = (vendor: string, api?: string): ModelReference =>
  (providers.get(vendor) as (id: string, options?: object) => ModelReference)(
    'm',
    api ? { api } : {},
  )

/** Results of a tool: what it returned, and the text of it. */
const results: [string, Pick<ToolResult, 'result' | 'isError'>, string][] = [
  ['a text', { result: 'sunny' }, 'sunny'],
  ['an object', { result: { a: [1, null] } }, '{"a":[1,null]}'],
  ['an object with a member output', { result: { output: 1 } }, '{"output":1}'],
  ['an object with a member error', { result: { error: 'x' } }, '{"error":"x"}'],
  ['null', { result: null }, 'null'],
  ['false', { result: false }, 'false'],
  ['nothing', { result: '' }, ''],
  ['an error', { result: 'No such city.', isError: true }, 'No such city.'],
  ['an error that says so', { result: 'Error: no', isError: true }, 'Error: no'],
  ['an error without a text', { result: '', isError: true }, ''],
  ['an error that is an object', { result: { why: 'x' }, isError: true }, '{"why":"x"}'],
]

type Told = (given: Pick<ToolResult, 'result' | 'isError'>, text: string) => JsonObject

const withPrefix = (isError: boolean | undefined, text: string): string =>
  isError && !/^error\b/i.test(text) ? `Error: ${text}` : text

/** How each format tells the model: the last message or item of the request. */
const formats: [string, ModelReference, string, Told][] = [
  [
    'anthropic',
    modelOf('anthropic'),
    'messages',
    ({ isError }, content) => ({
      role: 'user',
      content: [
        {
          type: 'tool_result',
          tool_use_id: 'c1',
          ...(content !== '' && { content }),
          ...(isError && { is_error: true }),
        },
      ],
    }),
  ],
  [
    'chat',
    modelOf('openai', 'chat'),
    'messages',
    ({ isError }, text) => ({
      role: 'tool',
      tool_call_id: 'c1',
      content: withPrefix(isError, text),
    }),
  ],
  [
    'responses',
    modelOf('openai', 'responses'),
    'input',
    ({ isError }, text) => ({
      type: 'function_call_output',
      call_id: 'c1',
      output: withPrefix(isError, text),
    }),
  ],
  [
    'google',
    modelOf('google'),
    'contents',
    ({ result, isError }) => {
      const isPlain = typeof result === 'object' && result !== null
      const isFree = isPlain && !('output' in result) && !('error' in result)
      const response = isError ? { error: result } : isFree ? result : { output: result }
      return { role: 'user', parts: [{ functionResponse: { id: 'c1', name: 't', response } }] } as JsonObject // prettier-ignore
    },
  ],
  [
    'ollama',
    modelOf('ollama'),
    'messages',
    ({ isError }, text) => ({
      role: 'tool',
      content: isError ? `Error: ${text}` : text,
      tool_name: 't',
    }),
  ],
]

describe.each(formats)('%s', (_, model, field, told) => {
  test.each(results)('UPP-146 UPP-115 the model receives %s', async (_name, given, text) => {
    const { fetch, seen } = stub()
    const call = { toolCallId: 'c1', toolName: 't', arguments: {} }
    await llm({ model, config: { apiKey: 'key-0123456789', fetch } }).generate([
      new UserMessage('x'),
      new AssistantMessage('', [call]),
      new ToolResultMessage([{ toolCallId: 'c1', toolName: 't', ...given }]),
    ])
    const list = (JSON.parse(seen[0]!.body) as Record<string, JsonObject[]>)[field]
    expect(list?.at(-1)).toEqual(told(given, text))
  })
})

import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { isPlainObject, type JsonObject, type JsonValue } from '@skein/base'
import { checkGrammar, contextOf, decodeStream, fold } from './wire-cases.ts'
import { isUPPError } from '../../src/contract/error.ts'
import { anthropicMessages } from '../../src/wires/anthropic-messages/wire.ts'
import { googleGenerate } from '../../src/wires/google-generate/wire.ts'
import { googleInteractions } from '../../src/wires/google-interactions/wire.ts'
import { ollamaChat } from '../../src/wires/ollama-chat/wire.ts'
import { anthropicMessagesServer } from '../../src/wires/anthropic-messages/server.ts'
import { googleGenerateServer } from '../../src/wires/google-generate/server.ts'
import { googleInteractionsServer } from '../../src/wires/google-interactions/server.ts'
import { ollamaChatServer } from '../../src/wires/ollama-chat/server.ts'
import type { Wire } from '../../src/wires/wire.ts'
import type { WireServer } from '../../src/wires/wire-server.ts'

// Streams written from the vendors' documentation, then damaged in one place.
const anthropicFrames = [
  {
    type: 'message_start',
    message: { id: 'm', model: 'c', content: [], usage: { input_tokens: 1 }, container: null },
  },
  { type: 'content_block_start', index: 0, content_block: { type: 'thinking', thinking: '' } },
  { type: 'content_block_delta', index: 0, delta: { type: 'thinking_delta', thinking: 'x' } },
  { type: 'content_block_delta', index: 0, delta: { type: 'signature_delta', signature: 's' } },
  { type: 'content_block_stop', index: 0 },
  { type: 'content_block_start', index: 1, content_block: { type: 'text', text: '' } },
  { type: 'content_block_delta', index: 1, delta: { type: 'text_delta', text: 'x' } },
  { type: 'content_block_delta', index: 1, delta: { type: 'citations_delta', citation: { a: 1 } } },
  { type: 'content_block_stop', index: 1 },
  {
    type: 'content_block_start',
    index: 2,
    content_block: { type: 'tool_use', id: 't', name: 'n', input: {} },
  },
  {
    type: 'content_block_delta',
    index: 2,
    delta: { type: 'input_json_delta', partial_json: '{}' },
  },
  { type: 'content_block_stop', index: 2 },
  {
    type: 'content_block_start',
    index: 3,
    content_block: { type: 'server_tool_use', id: 's', name: 'n', input: {} },
  },
  {
    type: 'content_block_delta',
    index: 3,
    delta: { type: 'input_json_delta', partial_json: '{}' },
  },
  { type: 'content_block_stop', index: 3 },
  {
    type: 'message_delta',
    delta: { stop_reason: 'tool_use' },
    usage: { output_tokens: 1, server_tool_use: { web: 1 }, cache_creation: { a: 1 } },
  },
  { type: 'message_stop' },
]
const googleFrames = [
  {
    candidates: [
      {
        content: {
          parts: [
            { text: 'x', thought: true },
            { text: 'y' },
            { text: 'z', thoughtSignature: 's' },
            { functionCall: { id: 'i', name: 'f', args: { a: 1 } } },
            { functionCall: { name: 'g', willContinue: true } },
            { functionCall: { partialArgs: [{ jsonPath: '$.a[0]', numberValue: 1 }] } },
            { inlineData: { mimeType: 'image/png', data: 'AQID' } },
            { executableCode: { code: '1' } },
          ],
        },
        finishReason: 'STOP',
        index: 0,
        citationMetadata: { citations: [1] },
      },
    ],
    promptFeedback: { safetyRatings: [] },
    usageMetadata: { promptTokenCount: 1, promptTokensDetails: [{ modality: 'TEXT' }] },
    modelVersion: 'v',
    responseId: 'r',
  },
  {
    candidates: [{ citationMetadata: { citations: [2] } }],
    usageMetadata: { thoughtsTokenCount: 1 },
  },
]
const interactionsFrames = [
  {
    event_type: 'interaction.created',
    interaction: { id: 'i', model: 'm', status: 'in_progress' },
  },
  { event_type: 'step.start', index: 0, step: { type: 'thought', summary: [{ text: 'x' }] } },
  { event_type: 'step.delta', index: 0, delta: { type: 'thought_signature', signature: 's' } },
  { event_type: 'step.stop', index: 0, usage: { total_thought_tokens: 1 } },
  {
    event_type: 'step.start',
    index: 1,
    step: { type: 'model_output', content: [{ type: 'text' }] },
  },
  { event_type: 'step.delta', index: 1, delta: { type: 'text', text: 'y' } },
  {
    event_type: 'step.delta',
    index: 1,
    delta: { type: 'text_annotation_delta', annotations: [{ url: 'https://x' }] },
  },
  {
    event_type: 'step.delta',
    index: 1,
    delta: { type: 'image', mime_type: 'image/png', data: 'AQID' },
  },
  {
    event_type: 'step.delta',
    index: 1,
    delta: { type: 'audio', mime_type: 'audio/wav', data: 'AQID' },
  },
  { event_type: 'step.stop', index: 1 },
  {
    event_type: 'step.start',
    index: 2,
    step: { type: 'function_call', id: 'c', name: 'f', arguments: {} },
  },
  { event_type: 'step.delta', index: 2, delta: { type: 'arguments_delta', arguments: '{"a":1}' } },
  { event_type: 'step.start', index: 3, step: { type: 'mcp_server_tool_call', id: 'd' } },
  { event_type: 'step.delta', index: 3, delta: { type: 'arguments_delta', arguments: '{}' } },
  { event_type: 'interaction.status_update', status: 'requires_action' },
  {
    event_type: 'interaction.completed',
    interaction: {
      status: 'requires_action',
      usage: { total_input_tokens: 1, input_tokens_by_modality: [{ modality: 'text', tokens: 1 }] },
      errors: [{ code: 'x', message: 'm' }],
    },
  },
]
const ollamaFrames = [
  { model: 'm', message: { thinking: 'x', content: '' }, done: false },
  { model: 'm', message: { content: 'y' }, done: false, logprobs: [{ token: 'y' }] },
  {
    model: 'm',
    message: { content: '', tool_calls: [{ id: 'i', function: { name: 'f', arguments: {} } }] },
    done: false,
  },
  { model: 'm', message: { content: '' }, done: true, done_reason: 'stop', eval_count: 1 },
]

type Path = readonly (string | number)[]

function pathsOf(value: JsonValue, at: Path = []): Path[] {
  const inner = Array.isArray(value)
    ? value.flatMap((item: JsonValue, index) => pathsOf(item, [...at, index]))
    : isPlainObject(value)
      ? Object.entries(value as JsonObject).flatMap(([key, item]) =>
          pathsOf(item ?? null, [...at, key]),
        )
      : []
  return [at, ...inner]
}

function damaged(value: JsonValue, [step, ...rest]: Path, by: JsonValue): JsonValue {
  if (step === undefined) return by
  if (Array.isArray(value))
    return value.map((item: JsonValue, index) => (index === step ? damaged(item, rest, by) : item))
  const fields = value as JsonObject
  return { ...fields, [step]: damaged(fields[step]!, rest, by) }
}

describe.each<[string, Wire<never>, JsonValue[], object]>([
  ['anthropic', anthropicMessages, anthropicFrames, { maxTokens: 1 }],
  ['google', googleGenerate, googleFrames, {}],
  ['google', googleInteractions, interactionsFrames, {}],
  ['ollama', ollamaChat, ollamaFrames, {}],
])('a damaged stream of %s', (provider, wire, frames, dialect) => {
  const context = contextOf({ provider, modelId: 'm', dialect: dialect as never })

  test('decodes whole when it is not damaged', () => {
    const events = decodeStream(wire, frames, context)
    checkGrammar(events)
    expect(events.length).toBeGreaterThan(3)
  })

  test('is a well-formed message or a UPPError, never anything else', () => {
    const paths = pathsOf(frames).filter((path) => path.length > 0)
    const junk = fc.oneof(fc.jsonValue({ maxDepth: 1 }), fc.constantFrom('__proto__', '', -1, 1e99))
    fc.assert(
      fc.property(fc.constantFrom(...paths), junk, (path, by) => {
        const broken = damaged(frames, path, by as JsonValue) as JsonValue[]
        try {
          const events = decodeStream(wire, broken, context)
          checkGrammar(events)
          fold(events)
        } catch (error) {
          if (!isUPPError(error)) throw error
          expect(error.provider).toBe(provider)
        }
      }),
      { numRuns: process.env['SKEIN_DEEP'] ? 20_000 : 400, seed: 23 },
    )
  })
})

const anthropicRequest = {
  model: 'm',
  max_tokens: 1,
  system: [{ type: 'text', text: 's' }],
  tools: [
    { name: 't', input_schema: {} },
    { type: 'web_1', name: 'w' },
  ],
  output_config: { format: { type: 'json_schema', schema: {} } },
  messages: [
    { role: 'system', content: 's' },
    {
      role: 'user',
      content: [
        { type: 'text', text: 'x' },
        { type: 'image', source: { type: 'base64', data: 'AQID', media_type: 'image/png' } },
        { type: 'document', source: { type: 'content', content: [{ type: 'text', text: 'x' }] } },
        { type: 'search_result', content: [{ type: 'text', text: 'x' }], title: 't' },
      ],
    },
    {
      role: 'assistant',
      content: [
        { type: 'thinking', thinking: 'x', signature: 's' },
        { type: 'tool_use', id: 'i', name: 'n', input: {} },
      ],
    },
    {
      role: 'user',
      content: [{ type: 'tool_result', tool_use_id: 'i', content: [{ type: 'text', text: 'x' }] }],
    },
  ],
}
const googleRequest = {
  systemInstruction: { parts: [{ text: 's' }] },
  tools: [
    {
      functionDeclarations: [{ name: 'f', parameters: { type: 'OBJECT', properties: { a: {} } } }],
    },
    { googleSearch: {} },
  ],
  generationConfig: { responseSchema: { type: 'OBJECT', nullable: true } },
  contents: [
    {
      role: 'user',
      parts: [
        { text: 'x' },
        { inlineData: { mimeType: 'audio/wav', data: 'AQID' } },
        { fileData: { mimeType: 'image/png', fileUri: 'https://x' } },
      ],
    },
    {
      role: 'model',
      parts: [
        { functionCall: { name: 'f', args: {} }, thoughtSignature: 's' },
        { inlineData: { mimeType: 'image/png', data: 'AQID' } },
      ],
    },
    { role: 'user', parts: [{ functionResponse: { name: 'f', response: { output: 1 } } }] },
  ],
}
const interactionsRequest = {
  model: 'm',
  system_instruction: 's',
  tools: [
    { type: 'function', name: 'f', parameters: { type: 'object' } },
    { type: 'google_search' },
  ],
  response_format: { type: 'text', mime_type: 'application/json', schema: { type: 'object' } },
  generation_config: { temperature: 1 },
  input: [
    {
      type: 'user_input',
      content: [
        { type: 'text', text: 'x' },
        { type: 'audio', mime_type: 'audio/wav', data: 'AQID' },
        { type: 'document', mime_type: 'text/plain', data: 'AQID' },
        { type: 'image', mime_type: 'image/png', uri: 'https://x' },
      ],
    },
    { type: 'thought', signature: 's', summary: [{ type: 'text', text: 'x' }] },
    { type: 'model_output', content: [{ type: 'image', mime_type: 'image/png', data: 'AQID' }] },
    { type: 'function_call', id: 'c', name: 'f', arguments: {} },
    { type: 'function_result', call_id: 'c', result: [{ type: 'text', text: 'x' }] },
  ],
}
const ollamaRequest = {
  model: 'm',
  stream: false,
  format: { type: 'object' },
  tools: [{ type: 'function', function: { name: 'f', parameters: {} } }],
  messages: [
    { role: 'system', content: 's' },
    { role: 'user', content: 'x', images: ['AQID'] },
    { role: 'assistant', content: '', tool_calls: [{ function: { name: 'f', arguments: {} } }] },
    { role: 'tool', content: 'x', tool_name: 'f' },
  ],
}

describe.each<[string, WireServer, JsonValue]>([
  ['anthropic', anthropicMessagesServer, anthropicRequest],
  ['google', googleGenerateServer, googleRequest],
  ['google', googleInteractionsServer, interactionsRequest],
  ['ollama', ollamaChatServer, ollamaRequest],
])('a damaged request to a server of %s', (provider, server, request) => {
  const route = { path: '/v1beta/models/m:generateContent', search: '' }

  test('is read whole when it is not damaged', () => {
    const { messages, tools, structure } = server.decodeRequest(request, route)
    expect(messages.map(({ type }) => type)).toEqual(['user', 'assistant', 'tool_result'])
    expect(tools).toHaveLength(1)
    expect(structure).toBeTypeOf('object')
  })

  test('is read or refused with INVALID_REQUEST, never anything else', () => {
    const paths = pathsOf(request)
    const junk = fc.oneof(fc.jsonValue({ maxDepth: 1 }), fc.constantFrom('__proto__', '', -1, 1e99))
    fc.assert(
      fc.property(fc.constantFrom(...paths), junk, (path, by) => {
        try {
          server.decodeRequest(damaged(request, path, by as JsonValue), route)
        } catch (error) {
          expect(error).toMatchObject({ code: 'INVALID_REQUEST', provider })
        }
      }),
      { numRuns: process.env['SKEIN_DEEP'] ? 20_000 : 400, seed: 31 },
    )
  })
})

import { describe, expect, test } from 'vitest'
import type { JsonObject, JsonValue } from '@skein/base'
import { contextOf, fold, requestOf } from './wire-cases.ts'
import {
  AssistantMessage,
  type Message,
  ToolResultMessage,
  UserMessage,
} from '../../src/contract/message.ts'
import { anthropicMessagesServer } from '../../src/wires/anthropic-messages/server.ts'
import { anthropicMessages } from '../../src/wires/anthropic-messages/wire.ts'
import { bedrockConverseServer } from '../../src/wires/bedrock-converse/server.ts'
import { bedrockConverse } from '../../src/wires/bedrock-converse/wire.ts'
import { googleGenerateServer } from '../../src/wires/google-generate/server.ts'
import { googleGenerate } from '../../src/wires/google-generate/wire.ts'
import { googleInteractionsServer } from '../../src/wires/google-interactions/server.ts'
import { googleInteractions } from '../../src/wires/google-interactions/wire.ts'
import { ollamaChatServer } from '../../src/wires/ollama-chat/server.ts'
import { ollamaChat } from '../../src/wires/ollama-chat/wire.ts'
import { chatDialect } from '../../src/wires/openai-chat/dialect.ts'
import { openaiChatServer } from '../../src/wires/openai-chat/server.ts'
import { openaiChat } from '../../src/wires/openai-chat/wire.ts'
import { responsesDialect } from '../../src/wires/openai-responses/types.ts'
import { openaiResponsesServer } from '../../src/wires/openai-responses/server.ts'
import { openaiResponses } from '../../src/wires/openai-responses/wire.ts'
import type { Wire } from '../../src/wires/wire.ts'
import type { WireServer } from '../../src/wires/wire-server.ts'

// A conversation may go on with another vendor: what is the first one's own stays behind, and what
// is sent is a request that the second one can read. Answers are written from documentation.

interface Vendor {
  readonly name: string
  readonly wire: Wire<never>
  readonly server: WireServer
  readonly dialect: object
  /** Says "Checking.", calls `f` twice; everything of its own is marked with `CANARY`. */
  readonly answer: JsonValue
}

const args = { a: 1 }
const vendors: readonly Vendor[] = [
  {
    name: 'openai-chat',
    wire: openaiChat,
    server: openaiChatServer,
    dialect: chatDialect,
    answer: {
      id: 'c',
      choices: [
        {
          index: 0,
          message: {
            role: 'assistant',
            reasoning_content: 'CANARY thought',
            content: 'Checking.',
            tool_calls: ['call|1:x', 'call|2:x'].map((id) => ({
              id,
              type: 'function',
              function: { name: 'f', arguments: JSON.stringify(args) },
              extra_content: { signature: 'CANARY' },
            })),
          },
          finish_reason: 'tool_calls',
        },
      ],
    },
  },
  {
    name: 'openai-responses',
    wire: openaiResponses,
    server: openaiResponsesServer,
    dialect: responsesDialect,
    answer: {
      id: 'r',
      status: 'completed',
      output: [
        { type: 'reasoning', id: 'rs_1', summary: [], encrypted_content: 'CANARY' },
        {
          type: 'message',
          id: 'msg_1',
          role: 'assistant',
          content: [{ type: 'output_text', text: 'Checking.', annotations: [] }],
        },
        { type: 'web_search_call', id: 'CANARY', status: 'completed' },
        ...['call_1', 'call_2'].map((call_id) => ({
          type: 'function_call',
          id: `fc_${call_id}`,
          call_id,
          name: 'f',
          arguments: JSON.stringify(args),
        })),
      ],
    },
  },
  {
    name: 'anthropic-messages',
    wire: anthropicMessages,
    server: anthropicMessagesServer,
    dialect: { maxTokens: 1 },
    answer: {
      content: [
        { type: 'thinking', thinking: 'CANARY thought', signature: 'CANARY' },
        { type: 'redacted_thinking', data: 'CANARY' },
        { type: 'tool_use', id: 'toolu_1', name: 'f', input: args, caller: { type: 'CANARY' } },
        { type: 'server_tool_use', id: 'CANARY', name: 'web_search', input: {} },
        { type: 'text', text: 'Checking.', citations: [{ type: 'CANARY' }] },
        { type: 'tool_use', id: 'toolu_2', name: 'f', input: args },
      ],
      stop_reason: 'tool_use',
    },
  },
  {
    name: 'google-generate',
    wire: googleGenerate,
    server: googleGenerateServer,
    dialect: {},
    answer: {
      candidates: [
        {
          content: {
            parts: [
              { text: 'CANARY thought', thought: true },
              { text: 'Checking.', thoughtSignature: 'CANARY' },
              { functionCall: { name: 'f', args }, thoughtSignature: 'CANARY' },
              { functionCall: { id: 'given/1', name: 'f', args } },
              { executableCode: { code: 'CANARY' } },
            ],
          },
          finishReason: 'STOP',
        },
      ],
    },
  },
  {
    name: 'bedrock-converse',
    wire: bedrockConverse,
    server: bedrockConverseServer,
    dialect: {},
    answer: {
      output: {
        message: {
          role: 'assistant',
          content: [
            { reasoningContent: { reasoningText: { text: 'CANARY', signature: 'CANARY' } } },
            { reasoningContent: { redactedContent: 'CANARY' } },
            { toolUse: { toolUseId: 'tooluse_1', name: 'f', input: args, caller: 'CANARY' } },
            { toolUse: { toolUseId: 'CANARY', name: 's', input: {}, type: 'server_tool_use' } },
            { text: 'Checking.' },
            { toolUse: { toolUseId: 'tooluse_2', name: 'f', input: args } },
          ],
        },
      },
      stopReason: 'tool_use',
    },
  },
  {
    name: 'google-interactions',
    wire: googleInteractions,
    server: googleInteractionsServer,
    dialect: {},
    answer: {
      id: 'i',
      status: 'requires_action',
      steps: [
        { type: 'thought', signature: 'CANARY', summary: [{ type: 'text', text: 'CANARY' }] },
        { type: 'google_search_call', id: 'CANARY', arguments: {}, signature: 'CANARY' },
        {
          type: 'model_output',
          content: [{ type: 'text', text: 'Checking.', annotations: [{ type: 'CANARY' }] }],
        },
        { type: 'function_call', id: 'i/1', name: 'f', arguments: args, extra: 'CANARY' },
        { type: 'function_call', id: 'i/2', name: 'f', arguments: args },
      ],
    },
  },
  {
    name: 'ollama-chat',
    wire: ollamaChat,
    server: ollamaChatServer,
    dialect: {},
    answer: {
      message: {
        thinking: 'CANARY thought',
        content: 'Checking.',
        tool_calls: [1, 2].map(() => ({
          function: { name: 'f', arguments: args },
          extra: 'CANARY',
        })),
      },
      done: true,
    },
  },
]

const targetOf = ({ name, dialect }: Vendor) => ({
  provider: `vendor of ${name}`,
  modelId: 'm',
  dialect: dialect as never,
})

/** A conversation in which the vendor answered with calls, which were then answered. */
function historyOf(vendor: Vendor): readonly Message[] {
  const events = vendor.wire.decodeResponse(vendor.answer, contextOf(targetOf(vendor)))
  const { content, toolCalls = [], metadata } = fold(events)
  const results = toolCalls.map(({ toolCallId }, i) => ({ toolCallId, result: `result ${i}` }))
  return [
    new UserMessage('Check!'),
    new AssistantMessage(content, toolCalls, { metadata: metadata! }),
    new ToolResultMessage(results),
    new UserMessage('And now?'),
  ]
}

const pairs = vendors.flatMap((from) => vendors.map((to) => ({ from, to })))

describe.each(pairs)('from $from.name to $to.name', ({ from, to }) => {
  const messages = historyOf(from)
  const { body, path } = to.wire.encodeRequest(requestOf({ messages }), targetOf(to), 'complete')

  test('every call is named, has its arguments, and is answered once', () => {
    const sent = JSON.parse(body) as JsonObject
    const [, search = ''] = path.split('?')
    const read = to.server.decodeRequest(sent, { path, search })
    const calls = read.messages.flatMap((one) =>
      one.type === 'assistant' ? (one.toolCalls ?? []) : [],
    )
    const results = read.messages.flatMap((one) => (one.type === 'tool_result' ? one.results : []))
    expect(calls.map(({ toolName, arguments: given }) => [toolName, given])).toEqual([
      ['f', args],
      ['f', args],
    ])
    expect(new Set(calls.map(({ toolCallId }) => toolCallId)).size).toBe(2)
    expect(results.map(({ toolCallId }) => toolCallId)).toEqual(
      calls.map(({ toolCallId }) => toolCallId),
    )
    expect(results.map(({ result }) => result)).toEqual(['result 0', 'result 1'])
    const said = read.messages.flatMap((one) => (one.type === 'tool_result' ? [] : [one.text]))
    expect(said.filter(Boolean)).toEqual(['Check!', 'Checking.', 'And now?'])
  })

  test(from === to ? 'its own data goes back' : 'its own data stays behind', () => {
    expect(body.includes('CANARY')).toBe(from === to)
  })
})

/** Thread → UPP messages → a vendor's request: the way that takes the place of a bridge per vendor. */
import { messageFromJSON, type LLMRequest } from '@skein/ai'
import {
  anthropicMessages,
  chatDialect,
  googleGenerate,
  googleInteractions,
  ollamaChat,
  openaiChat,
  openaiResponses,
  responsesDialect,
  type Wire,
} from '@skein/ai/wires'
import { sequentialIds, systemClock, type MetadataJSON } from '@skein/base'
import type { MessagePart, Thread } from '@skein/threads'
import { fromUppMessages, toUppMessages } from '@skein/threads/upp'
import { describe, expect, test } from 'vitest'

const at = '2026-03-01T09:00:00Z'
const SIGNATURE = 'canary-signature'

const wires: Record<string, { readonly wire: Wire; readonly dialect: object }> = {
  'anthropic-messages': { wire: anthropicMessages as Wire, dialect: {} },
  'openai-responses': { wire: openaiResponses as Wire, dialect: responsesDialect },
  'openai-chat': { wire: openaiChat as Wire, dialect: chatDialect },
  'google-generate': { wire: googleGenerate as Wire, dialect: {} },
  'google-interactions': { wire: googleInteractions as Wire, dialect: {} },
  'ollama-chat': { wire: ollamaChat as Wire, dialect: {} },
}

function threadOf(...parts: MessagePart[]): Thread {
  return {
    version: '2.0.0',
    thread_id: 't1',
    created_at: at,
    updated_at: at,
    agents: { ada: { agent_id: 'ada', agent_name: 'Ada', created_at: at } },
    turns: [
      {
        turn_type: 'user',
        submitted_at: at,
        parts: [{ part_kind: 'user-prompt', content: 'Hello.' }],
      },
      {
        turn_type: 'agent',
        agent_id: 'ada',
        started_at: at,
        completed_at: at,
        messages: [{ message_type: 'response', timestamp: at, agent_id: 'ada', parts }],
      },
    ],
  }
}

function requestBody(thread: Thread, name: string, provider: string): string {
  const { wire, dialect } = wires[name]!
  const request: LLMRequest = {
    messages: toUppMessages(thread).value.map(messageFromJSON),
    params: { max_tokens: 10 },
    tools: [],
    config: {},
    signal: new AbortController().signal,
    clock: systemClock,
    ids: sequentialIds('x'),
  }
  return wire.encodeRequest(request, { provider, modelId: 'm', dialect }, 'complete').body
}

const signed: MessagePart = {
  part_kind: 'thinking',
  content: 'A greeting.',
  signature: SIGNATURE,
  provider_name: 'anthropic',
}
const said: MessagePart = { part_kind: 'text', content: 'Hi there.' }

describe.each(Object.keys(wires))('%s', (name) => {
  test('sends the words of a thread, and no signature of another vendor', () => {
    const body = requestBody(threadOf(signed, said), name, 'vendor')
    expect(body).toContain('Hi there.')
    expect(body).not.toContain(SIGNATURE)
    expect(body).not.toContain('encrypted_content')
  })

  test('results come before the prompt of the same request, each next to its call', () => {
    const call: MessagePart = {
      part_kind: 'tool-call',
      tool_name: 'look',
      tool_call_id: 'c1',
      args: '{"q":1}',
    }
    const thread = threadOf(call)
    const [user, agent] = thread.turns as [Thread['turns'][0], Thread['turns'][0]]
    const answered = {
      ...thread,
      turns: [
        user,
        agent,
        {
          turn_type: 'user',
          submitted_at: at,
          parts: [
            { part_kind: 'user-prompt', content: 'And then?' },
            {
              part_kind: 'tool-return',
              tool_name: 'look',
              tool_call_id: 'c1',
              status: 'success',
              content: 'found it',
            },
          ],
        },
      ],
    } as Thread
    const body = requestBody(answered, name, 'vendor')
    expect(body.indexOf('found it')).toBeGreaterThan(body.indexOf('look'))
    expect(body.indexOf('And then?')).toBeGreaterThan(body.indexOf('found it'))
  })
})

test('the report names the signature that UPP has no field for', () => {
  expect(toUppMessages(threadOf(signed)).lost).toContainEqual({
    pointer: '/turns/1/messages/0/parts/0/signature',
    reason: 'UPP has no field for it',
  })
})

test('thinking that a wire kept is replayed to its own vendor and to no one else', () => {
  const native = { type: 'thinking', thinking: 'A greeting.', signature: SIGNATURE }
  const metadata: MetadataJSON = { anthropic: { api: 'anthropic-messages', native } }
  const { value: thread } = fromUppMessages([
    { id: 'u', type: 'user', content: [{ type: 'text', text: 'Hello.' }], timestamp: at },
    {
      id: 'a',
      type: 'assistant',
      content: [
        { type: 'reasoning', text: 'A greeting.', metadata },
        { type: 'text', text: 'Hi there.' },
      ],
      timestamp: at,
    },
  ])
  expect(requestBody(thread, 'anthropic-messages', 'anthropic')).toContain(SIGNATURE)
  expect(requestBody(thread, 'anthropic-messages', 'bedrock')).not.toContain(SIGNATURE)
  expect(requestBody(thread, 'openai-responses', 'openai')).not.toContain(SIGNATURE)
})

test('a block that only one vendor knows survives the thread and goes back to that vendor', () => {
  const native = { type: 'server_tool_use', id: 's1', name: 'web_search', input: { q: 'canary' } }
  const metadata: MetadataJSON = { anthropic: { api: 'anthropic-messages', native } }
  const { value: thread } = fromUppMessages([
    { id: 'u', type: 'user', content: [{ type: 'text', text: 'Hello.' }], timestamp: at },
    {
      id: 'a',
      type: 'assistant',
      content: [
        { type: 'native', name: 'server_tool_use', metadata },
        { type: 'text', text: 'Hi.' },
      ],
      timestamp: at,
    },
  ])
  expect(requestBody(thread, 'anthropic-messages', 'anthropic')).toContain('server_tool_use')
  expect(requestBody(thread, 'openai-responses', 'openai')).not.toContain('canary')
})

test('media of a thread reach the vendor as bytes', () => {
  const thread = threadOf(said)
  const sound = {
    ...thread,
    turns: [
      {
        turn_type: 'user',
        submitted_at: at,
        parts: [
          {
            part_kind: 'user-prompt',
            content: [
              'Listen.',
              { kind: 'binary', data: 'SGVsbG8_', media_type: 'audio/wav', identifier: 'a' },
            ],
          },
        ],
      },
    ],
  } as Thread
  expect(requestBody(sound, 'google-generate', 'google')).toContain('SGVsbG8/')
})

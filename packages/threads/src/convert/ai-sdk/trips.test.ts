import { manualClock } from '@skein/base'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { arbitraryThread } from '../../../test/arbitrary-thread.ts'
import { answered, endings } from '../../../test/call-endings.ts'
import { plain } from '../../../test/plain.ts'
import {
  START,
  agentTurn,
  call,
  event,
  fullThread,
  response,
  text,
  thread as sampleThread,
  userTurn,
} from '../../../test/samples.ts'
import type { AgentTurn } from '../../document/thread.ts'
import type { MessagePart } from '../../document/part.ts'
import { carry } from './carrier.ts'
import { encodeLastResponse, encodeUIMessage } from './encode-ui-message.ts'
import { fromUIChunks } from './ui-stream.ts'
import { fromUIMessages } from './from-ui-messages.ts'
import { toUIMessages } from './to-ui-messages.ts'
import type { UIMessage, UIMessageChunk } from './types.ts'

const clock = manualClock(Date.UTC(2026, 0, 1))
const numRuns = process.env['SKEIN_DEEP'] ? 1000 : 100

/** For messages that come from a store of one's own. */
const trusted = { clock, carrier: 'trust' } as const

test('a person sees a denial as a denial and every other bad ending as an error', () => {
  const states = Object.entries(endings).map(([name, part]) => {
    const [, tool] = toUIMessages(answered(part))[1]!.parts as {
      state: string
      errorText?: string
    }[]
    return [name, tool!.state]
  })
  expect(states).toEqual([
    ['success', 'output-available'],
    ['failure', 'output-error'],
    ['interruption', 'output-error'],
    ['denial', 'output-denied'],
    ['validation error', 'output-error'],
    ['retry', 'output-error'],
    ['retry with details', 'output-error'],
  ])
})

describe('how a stream ended', () => {
  const words: UIMessageChunk[] = [
    { type: 'start', messageId: 'm' },
    { type: 'start-step' },
    { type: 'text-start', id: 't' },
    { type: 'text-delta', id: 't', delta: 'Hal' },
  ]
  const ended = (...chunks: UIMessageChunk[]): AgentTurn =>
    fromUIChunks([...words, ...chunks], { clock }).value.turns[0] as AgentTurn

  test('a finish is complete, and its reason is that of the response', () => {
    const turn = ended(
      { type: 'text-end', id: 't' },
      { type: 'finish', finishReason: 'tool-calls' },
    )
    expect(turn.completion_status).toBeUndefined()
    expect(turn.messages[0]).toMatchObject({
      finish_reason: 'tool_call',
      parts: [{ content: 'Hal' }],
    })
    expect(ended({ type: 'finish', finishReason: 'other' }).messages[0]).toMatchObject({
      ui_finish_reason: 'other',
    })
  })

  test.each<[string, UIMessageChunk[], string]>([
    ['no finish: the connection broke', [], 'network_failure'],
    ['an error without a finish', [{ type: 'error', errorText: 'overloaded' }], 'error'],
    ['an abort', [{ type: 'abort', reason: 'tired' }, { type: 'finish' }], 'tired'],
    [
      'a finish that says interrupted',
      [{ type: 'finish', finishReason: 'interrupted' }],
      'user_cancelled',
    ],
  ])('%s', (_, chunks, reason) => {
    const turn = ended(...chunks)
    expect(turn).toMatchObject({ completion_status: 'interrupted', interruption: { reason } })
    expect(turn.messages[0]).toMatchObject({ parts: [{ part_kind: 'text', content: 'Hal' }] })
  })

  test('half a call is not history, and is reported', () => {
    const { value, lost } = fromUIChunks(
      [
        ...words,
        { type: 'tool-input-start', toolCallId: 'c', toolName: 'f' },
        { type: 'tool-input-delta', toolCallId: 'c', inputTextDelta: '{"a' },
      ],
      { clock },
    )
    expect(JSON.stringify(value.turns)).not.toContain('tool-call')
    expect(lost).toEqual([
      { pointer: '/0/parts/2', reason: 'the arguments of this call never became complete' },
    ])
  })

  test('argument text is kept byte for byte, unless the server mended it', () => {
    const call = (text: string, input: unknown): unknown => {
      const turn = ended(
        { type: 'tool-input-start', toolCallId: 'c', toolName: 'f' },
        { type: 'tool-input-delta', toolCallId: 'c', inputTextDelta: text },
        { type: 'tool-input-available', toolCallId: 'c', toolName: 'f', input },
        { type: 'finish' },
      )
      return (turn.messages[0] as unknown as { parts: { args?: unknown }[] }).parts[1]!.args
    }
    expect(call('{ "t": 18.0 }', { t: 18 })).toBe('{ "t": 18.0 }')
    expect(call('{ "t": 18.0', { t: 18 })).toEqual({ t: 18 })
  })

  test('outcomes keep the order in which they came', () => {
    const turn = ended(
      { type: 'tool-input-available', toolCallId: 'a', toolName: 'f', input: {} },
      { type: 'tool-input-available', toolCallId: 'b', toolName: 'f', input: {} },
      { type: 'tool-output-available', toolCallId: 'b', output: 1 },
      { type: 'tool-output-available', toolCallId: 'a', output: 2 },
      { type: 'finish' },
    )
    expect(turn.messages[1]).toMatchObject({
      parts: [{ tool_call_id: 'b' }, { tool_call_id: 'a' }],
    })
  })
})

describe('what everyone may see', () => {
  const secrets = ['c2ln', 'model-a', 'input_tokens', 'canary']
  const thread = sampleThread([
    ...fullThread().turns,
    agentTurn('cyd', [
      {
        ...response('cyd', 20, {
          ...text('hi'),
          id: 'canary',
          provider_details: { k: 'canary' },
        } as MessagePart),
        provider_response_id: 'canary',
      },
      response('cyd', 21, { part_kind: 'compaction', content: 'canary' }),
    ]),
  ])

  test('holds no usage, provider id or signature unless asked for', () => {
    const shown = JSON.stringify(toUIMessages(thread))
    for (const secret of secrets) expect(shown).not.toContain(secret)
    const whole = JSON.stringify(toUIMessages(thread, { carry: 'all' }))
    for (const secret of secrets) expect(whole).toContain(secret)
  })

  test('one message per response, and on each part who said it', () => {
    const messages = toUIMessages(thread)
    expect(messages.map((message) => message.role)).toEqual(['user', 'assistant'])
    const agents = messages[1]!.parts.flatMap((part) => {
      const metadata =
        'providerMetadata' in part
          ? part.providerMetadata
          : 'callProviderMetadata' in part
            ? part.callProviderMetadata
            : undefined
      return (metadata?.['threadprotocol']?.['agent_id'] as string | undefined) ?? []
    })
    expect(new Set(agents)).toEqual(new Set(['ada', 'bob', 'cyd']))
    expect(messages[1]!.parts.filter((part) => part.type === 'data-tp-turn')).toMatchObject([
      { data: { agent_id: 'bob', agent_name: 'Bob' } },
      { data: { agent_id: 'cyd', agent_name: 'Cyd' } },
    ])
    const { value } = fromUIMessages(plain(messages), trusted)
    expect(value.turns.map((turn) => (turn as AgentTurn).agent_id)).toEqual([
      undefined,
      'ada',
      'bob',
      'cyd',
    ])
    expect(value.agents['bob']?.agent_name).toBe('Bob')
  })

  test('text parts are not merged', () => {
    const parts = [text('a'), text('b'), text(''), text('c')]
    const { value } = fromUIMessages(
      toUIMessages(sampleThread([agentTurn('ada', [response('ada', 1, ...parts)])])),
      { clock },
    )
    expect((value.turns[0] as AgentTurn).messages[0]).toMatchObject({ parts })
  })
})

describe('a thread that travels whole', () => {
  test('comes back equal through messages and through chunks', () => {
    fc.assert(
      fc.property(arbitraryThread, (thread) => {
        const messages = plain(toUIMessages(thread, { carry: 'all' }))
        expect(fromUIMessages(messages, { thread, carrier: 'trust' }).value).toEqual(plain(thread))
        const last = messages.at(-1)
        if (last?.role !== 'assistant') return
        const chunks = plain([...encodeUIMessage(last)])
        expect(fromUIChunks(chunks, { messages: messages.slice(0, -1), thread }).value).toEqual(
          plain(thread),
        )
      }),
      { seed: 31, numRuns },
    )
  })

  test('takes what the client has added: an answer, an output', () => {
    const pending = sampleThread([
      userTurn('go'),
      agentTurn('ada', [
        response('ada', 1, call('c1'), call('c2')),
        event('tool.approval.requested', 2, { approval_id: 'p1', tool_call_id: 'c1' }),
      ]),
    ])
    const messages = plain(toUIMessages(pending, { carry: 'all' }))
    const [, first, second] = messages[1]!.parts as { state: string; approval: object }[]
    Object.assign(first!, { state: 'approval-responded', approval: { id: 'p1', approved: true } })
    Object.assign(second!, { state: 'output-available', output: 'from the page' })
    const { value } = fromUIMessages(messages, trusted)
    expect(value.turns.slice(0, 2)).toEqual(pending.turns)
    expect(value.turns[2]).toMatchObject({
      agent_id: 'ada',
      messages: [
        {
          event_type: 'tool.approval.responded',
          event_data: { approval_id: 'p1', approved: true },
        },
        { message_type: 'request', parts: [{ tool_call_id: 'c2', content: 'from the page' }] },
      ],
    })
  })
})

test('TP-08 turns of an unknown type, agents and metadata of several turns travel whole', () => {
  const robot = { turn_type: 'robot', program: [1] } as never
  const turn = (agent: string, note: object) => ({
    ...agentTurn(agent, [response(agent, 1, text(agent))]),
    turn_id: agent,
    client_metadata: note,
  })
  const thread = sampleThread([robot, turn('ada', { a: 1 }), robot, turn('bob', { b: 2 })])
  const messages = plain(toUIMessages(thread, { carry: 'all' }))
  expect(messages).toHaveLength(1)
  expect(messages[0]!.metadata).toMatchObject({ a: 1, b: 2 })
  expect(fromUIMessages(messages, trusted).value).toEqual(thread)
  // The registry of the caller goes before the one that was carried.
  const ada = { agent_id: 'ada', agent_name: 'Renamed', created_at: START }
  const own = fromUIMessages(messages, { ...trusted, thread: { agents: { ada } } }).value
  expect(own.agents).toEqual({ ...thread.agents, ada })
})

test('TP-35 what a client adds belongs to the agent that spoke last', () => {
  const thread = sampleThread([
    userTurn('go'),
    agentTurn('ada', [response('ada', 1, text('over to bob'))]),
    agentTurn('bob', [response('bob', 2, call('c1'))]),
  ])
  const messages = plain(toUIMessages(thread, { carry: 'all' }))
  const tool = messages[1]!.parts.find((part) => 'toolCallId' in part)!
  Object.assign(tool, { state: 'output-available', output: 'done' })
  expect(fromUIMessages(messages, trusted).value.turns[3]).toMatchObject({
    agent_id: 'bob',
    messages: [{ agent_id: 'bob', parts: [{ tool_call_id: 'c1', content: 'done' }] }],
  })
})

test('TP-48 speech is shown with who spoke', () => {
  const speech = { part_kind: 'speech', speaker: 'assistant', transcript: 'hello' } as const
  const [message] = toUIMessages(sampleThread([agentTurn('ada', [response('ada', 1, speech)])]))
  expect(message!.parts[1]).toEqual({
    type: 'text',
    text: 'hello',
    state: 'done',
    providerMetadata: { threadprotocol: { agent_id: 'ada' } },
  })
})

test('TP-54 citations and the reason of an answered approval are in the stream of a message', () => {
  const parts = [
    { type: 'text', text: 'x', state: 'done', citations: [{ n: 1 }] },
    {
      type: 'tool-pay',
      toolCallId: 'c',
      state: 'approval-responded',
      input: {},
      approval: { id: 'p', approved: false, reason: 'too much' },
    },
  ] as unknown as UIMessage['parts']
  const chunks = plain([...encodeUIMessage({ id: 'm', role: 'assistant', parts })])
  expect(fromUIChunks(chunks, { clock }).value.turns).toMatchObject([
    {
      messages: [
        {
          // The state of a call is nowhere but in the events.
          parts: [{ citations: [{ n: 1 }] }, { part_kind: 'tool-call', tool_call_id: 'c' }],
        },
        { event_type: 'tool.approval.requested' },
        { event_type: 'tool.approval.responded', event_data: { reason: 'too much' } },
      ],
    },
  ])
  const stored = JSON.stringify(fromUIChunks(chunks, { clock }).value.turns)
  expect(stored).not.toContain('"state"')
})

test.each<[string, string, object]>([
  ['data:image/png;base64,AAAA', 'image/png', { kind: 'binary', data: 'AAAA' }],
  ['data:text/plain,a%20b', 'text/plain', { kind: 'document-url', url: 'data:text/plain,a%20b' }],
  ['https://x.test/v', 'video/mp4', { kind: 'video-url', url: 'https://x.test/v' }],
  ['https://x.test/a', 'audio/wav', { kind: 'audio-url', url: 'https://x.test/a' }],
  ['https://x.test/i', 'image/png', { kind: 'image-url', url: 'https://x.test/i' }],
  ['https://x.test/d', 'application/pdf', { kind: 'document-url', url: 'https://x.test/d' }],
])('TP-24 the file %s of a person, and of an answer', (url, mediaType, content) => {
  const file = { type: 'file', url, mediaType } as const
  const media = { media_type: mediaType, identifier: expect.any(String) as string }
  const { value } = fromUIMessages(
    [
      { id: 'u', role: 'user', parts: [file] },
      { id: 'a', role: 'assistant', parts: [file] },
    ],
    { clock },
  )
  // A file alone is a list with one item, because a prompt is text or a list.
  expect(plain(value.turns)).toMatchObject([
    { parts: [{ part_kind: 'user-prompt', content: [{ ...content, ...media }] }] },
    { messages: [{ parts: [{ part_kind: 'file', content: { ...content, ...media } }] }] },
  ])
})

test('TP-25 a data URL has every character in the standard alphabet', () => {
  const content = { kind: 'binary', data: '-_-_a__-', media_type: 'x/y', identifier: 'i' } as const
  const thread = sampleThread([
    userTurn([{ part_kind: 'user-prompt', content: [content] }]),
    agentTurn('ada', [response('ada', 1, { part_kind: 'file', content })]),
  ])
  const urls = toUIMessages(thread).flatMap(({ parts }) =>
    parts.flatMap((part) => (part.type === 'file' ? [part.url] : [])),
  )
  expect(urls).toEqual(Array(2).fill('data:x/y;base64,+/+/a//+'))
})

describe('messages that were born in a client', () => {
  const born: UIMessage[] = [
    {
      id: 'u1',
      role: 'user',
      parts: [
        { type: 'text', text: 'look' },
        {
          type: 'file',
          url: 'data:image/png;base64,AAAA',
          mediaType: 'image/png',
          filename: 'a.png',
        },
      ],
      metadata: { locale: 'nb' },
    },
    {
      id: 'a1',
      role: 'assistant',
      metadata: { model: 'x' },
      parts: [
        { type: 'step-start' },
        { type: 'text', text: 'I see', state: 'done', providerMetadata: { acme: { itemId: '7' } } },
        { type: 'source-url', sourceId: 's', url: 'https://a.example', title: 'A' },
        { type: 'custom', kind: 'acme.box', providerMetadata: { acme: { x: 1 } } },
        {
          type: 'dynamic-tool',
          toolName: 'mcp',
          toolCallId: 'd',
          title: 'MCP',
          state: 'output-available',
          input: { a: 1 },
          output: [1],
        },
        { type: 'data-app.note', id: 'n', data: { ok: true } },
        { type: 'file', url: 'https://a.example/p.png', mediaType: 'image/png' },
      ],
    },
  ]

  test('keep their content, ids and the metadata of others through a thread', () => {
    const { value, lost } = fromUIMessages(born, { clock })
    expect(lost).toEqual([])
    const back = toUIMessages(value)
    expect(back.map((message) => message.id)).toEqual(['u1', 'a1'])
    expect(back[0]).toEqual(born[0])
    expect(back[1]!.metadata).toMatchObject({ model: 'x' })
    const types = back[1]!.parts.map((part) => part.type)
    expect([...types].sort()).toEqual(born[1]!.parts.map((part) => part.type).sort())
    for (const part of born[1]!.parts)
      expect(back[1]!.parts).toContainEqual(expect.objectContaining(shownOf(part)))
    expect(back[1]!.parts).toContainEqual(
      expect.objectContaining({
        text: 'I see',
        providerMetadata: { acme: { itemId: '7' }, threadprotocol: { agent_id: 'assistant' } },
      }),
    )
  })

  test('a system message is configuration: reported, not stored', () => {
    const { value, lost } = fromUIMessages(
      [{ id: 's', role: 'system', parts: [{ type: 'text', text: 'You are Fred.' }] }],
      { clock },
    )
    expect(JSON.stringify(value)).not.toContain('Fred')
    expect(lost).toHaveLength(1)
  })

  test('a carrier that a client forged does no harm', () => {
    for (const forged of [
      null,
      1,
      'x',
      [],
      { turns: 1 },
      { turns: [null, { index: 'x', turn: {} }, { index: 0, turn: { turn_type: 'user' } }] },
    ]) {
      const message = {
        id: 'f',
        role: 'assistant',
        metadata: { threadprotocol: forged },
        parts: [
          {
            type: 'text',
            text: 'hi',
            providerMetadata: { threadprotocol: { at: '9.9.9', part: 7 } },
          },
        ],
      }
      for (const carrier of ['trust', 'ignore'] as const)
        expect(() => fromUIMessages([message as never], { clock, carrier })).not.toThrow()
    }
  })

  test('what a page carries is not believed unless asked for', () => {
    const victim = sampleThread(
      [
        { ...userTurn('what the person never said'), user_id: 'admin' },
        agentTurn('ada', [response('ada', 1, text('I promised.'))]),
      ],
      { thread_id: 'victim', metadata: { role: 'admin' } },
    )
    const messages = plain(toUIMessages(victim, { carry: 'all' }))
    const said = messages[0]!.parts.find((part) => part.type === 'text')!
    said.text = 'hello'
    const steering = {
      type: 'steering-message',
      id: 's',
      parts: [{ type: 'text', text: 'x', providerMetadata: carry({ agent_id: 'admin' }) }],
    }
    messages[1]!.parts.push(steering as never)
    const mine = { thread_id: 'mine', created_at: START }
    const { value } = fromUIMessages(messages, { clock, thread: mine })
    const stored = JSON.stringify(value)
    for (const forged of ['"victim"', 'admin', 'never said', '"ada"'])
      expect(stored).not.toContain(forged)
    expect(value).toMatchObject({
      thread_id: 'mine',
      turns: [{ parts: [{ content: 'hello' }] }, { agent_id: 'assistant' }],
    })
    // Also when it is asked for, the options go before what was carried.
    const trust = fromUIMessages(messages, { clock, thread: mine, carrier: 'trust' }).value
    expect(trust).toMatchObject({ thread_id: 'mine', metadata: { role: 'admin' } })
  })
})

/** A part without the metadata to which ours is added. */
function shownOf(part: UIMessage['parts'][number]): object {
  return Object.fromEntries(
    Object.entries(part).filter(([key]) => !key.endsWith('roviderMetadata')),
  )
}

test('a stored response streams again with its finish reason', () => {
  const stopped = {
    ...agentTurn('ada', [
      { ...response('ada', 1, text('a')), finish_reason: 'content_filter' as const },
    ]),
  }
  expect(encodeLastResponse(sampleThread([userTurn('go'), stopped])).at(-1)).toEqual({
    type: 'finish',
    finishReason: 'content-filter',
  })
  const cut = { ...stopped, completion_status: 'interrupted' as const }
  expect(encodeLastResponse(sampleThread([cut])).at(-1)).toEqual({
    type: 'finish',
    finishReason: 'interrupted',
  })
  expect(encodeLastResponse(sampleThread([userTurn('go')]))).toEqual([])
})

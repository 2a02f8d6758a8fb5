/** What parts and chunks of a page become: values that look like nothing, every state of a call, metadata. */
import { manualClock } from '@skein/base'
import { describe, expect, test } from 'vitest'
import { plain } from '../../../test/plain.ts'
import {
  agentTurn,
  answer,
  call,
  response,
  text,
  thread as sampleThread,
  userTurn,
} from '../../../test/samples.ts'
import { validateThread, type AgentTurn, type MessagePart } from '../../index.ts'
import { encodeUIMessage } from './encode-ui-message.ts'
import { fromUIMessages } from './from-ui-messages.ts'
import { toUIMessages } from './to-ui-messages.ts'
import type { UIMessage, UIMessageChunk } from './types.ts'
import { fromUIChunks } from './ui-stream.ts'

const clock = manualClock(Date.UTC(2026, 0, 1))
const time = '2026-01-01T00:00:00.000Z'
const by = { timestamp: time, agent_id: 'assistant' }

/** The messages of the only turn that one assistant message becomes. */
function readParts(...parts: readonly object[]): unknown {
  const message = { id: 'm', role: 'assistant', parts } as unknown as UIMessage
  const { value, lost } = fromUIMessages([message], { clock })
  expect(lost).toEqual([])
  expect(value.turns).toHaveLength(1)
  return plain((value.turns[0] as AgentTurn).messages)
}

/** The messages of the turn that a stream becomes. */
function readChunks(...chunks: readonly object[]): AgentTurn['messages'] {
  const { value, lost } = fromUIChunks([...chunks, { type: 'finish' }] as UIMessageChunk[], {
    clock,
  })
  expect(lost).toEqual([])
  expect(value.turns).toHaveLength(1)
  return plain((value.turns[0] as AgentTurn).messages)
}

describe('TP-42 inputs and outputs that look like nothing', () => {
  // Each in a list of its own, which `test.each` takes apart.
  const values: [unknown][] = [[''], [0], [false], [null], [[]], [{}], ['0'], [[0]], [{ a: null }]]

  test.each(values)('TP-19, TP-42: %j is the input and the output of a call', (value) => {
    const ids = { tool_name: 'look_up', tool_call_id: 'c' }
    const own = { ...ids, provider_name: 'p' }
    const made = [
      {
        message_type: 'response',
        ...by,
        parts: [
          call('c', 'look_up', value),
          { part_kind: 'builtin-tool-call', ...own, tool_call_id: 'd', args: value },
          {
            part_kind: 'builtin-tool-return',
            ...own,
            tool_call_id: 'd',
            status: 'success',
            content: value,
          },
        ],
      },
      { message_type: 'request', ...by, parts: [answer('c', 'look_up', value)] },
    ]
    const metadata = { pydantic_ai: { provider_name: 'p' } }
    const said = { type: 'tool-look_up', state: 'output-available', input: value, output: value }
    const hosted = {
      providerExecuted: true,
      callProviderMetadata: metadata,
      resultProviderMetadata: metadata,
    }
    expect(
      readParts({ ...said, toolCallId: 'c' }, { ...said, toolCallId: 'd', ...hosted }),
    ).toEqual(made)
    const streamed = (toolCallId: string, rest: object = {}) => [
      { type: 'tool-input-available', toolCallId, toolName: 'look_up', input: value, ...rest },
      { type: 'tool-output-available', toolCallId, output: value, ...rest },
    ]
    const executed = { providerExecuted: true, providerMetadata: metadata }
    expect(readChunks(...streamed('c'), ...streamed('d', executed))).toEqual(made)
  })

  test('TP-42 an input or output that is missing is null', () => {
    const said = { type: 'tool-look_up', state: 'output-available', toolCallId: 'c' }
    expect(readParts(said)).toMatchObject([
      { parts: [{ args: null }] },
      { parts: [{ content: null }] },
    ])
  })
})

describe('TP-32 every state of a call', () => {
  const tool = {
    type: 'dynamic-tool',
    toolName: 'pay',
    toolCallId: 'c',
    title: 'Pay',
    toolMetadata: { k: 1 },
    input: { eur: 5 },
  }
  const approval = { id: 'p', requestReason: 'much', isAutomatic: false, signature: 's' }
  const refused = { approval: { ...approval, approved: false, reason: 'no' } }
  const allowed = { approval: { ...approval, approved: true } }
  const ids = { tool_name: 'pay', tool_call_id: 'c' }
  const asked = {
    message_type: 'response',
    ...by,
    parts: [
      {
        part_kind: 'tool-call',
        ...ids,
        args: { eur: 5 },
        title: 'Pay',
        tool_metadata: { k: 1 },
        dynamic: true,
      },
    ],
  }
  const event = (name: string, data: object) => ({
    message_type: 'system',
    timestamp: time,
    event_type: `tool.approval.${name}`,
    event_data: { approval_id: 'p', tool_call_id: 'c', ...data },
  })
  const requested = event('requested', { reason: 'much', is_automatic: false, signature: 's' })
  const responded = (data: object) => event('responded', data)
  const outcome = (part: object) => ({
    message_type: 'request',
    ...by,
    parts: [{ part_kind: 'tool-return', ...ids, ...part }],
  })
  const done = outcome({ status: 'success', content: 'paid' })
  const failed = outcome({ status: 'error', content: 'broke', outcome: 'failed' })
  const denied = (content: string) => outcome({ status: 'error', outcome: 'denied', content })

  test.each<[string, object, object[]]>([
    ['input-available', {}, []],
    ['approval-requested', { approval }, [requested]],
    ['approval-responded', allowed, [requested, responded({ approved: true })]],
    ['approval-responded', refused, [requested, responded({ approved: false, reason: 'no' })]],
    ['output-available', { output: 'paid' }, [done]],
    [
      'output-available',
      { output: 'paid', ...allowed },
      [requested, responded({ approved: true }), done],
    ],
    ['output-error', { errorText: 'broke' }, [failed]],
    ['output-denied', {}, [denied('Tool call execution denied.')]],
    [
      'output-denied',
      refused,
      [requested, responded({ approved: false, reason: 'no' }), denied('no')],
    ],
  ])('TP-32 %s %j: parts hold no state, events and outcomes do', (state, rest, more) => {
    expect(readParts({ ...tool, state, ...rest })).toEqual([asked, ...more])
  })

  test.each([
    'Wrong.\n\nFix the errors and try again.',
    '\n\nFix the errors and try again.',
    'Wrong.',
  ])('TP-54 the text that Pydantic AI adds to a retry is not stored: %j', (errorText) => {
    const content = errorText.replace('\n\nFix the errors and try again.', '')
    const isRetry = content !== errorText
    const end = isRetry
      ? { part_kind: 'retry-prompt', content, ...ids }
      : { part_kind: 'tool-return', ...ids, content, status: 'error', outcome: 'failed' }
    const chunk = { toolCallId: 'c', toolName: 'pay', input: {} }
    expect(readParts({ ...tool, state: 'output-error', errorText })).toMatchObject([
      {},
      { parts: [end] },
    ])
    expect(
      readChunks(
        { type: 'tool-input-available', ...chunk },
        { type: 'tool-output-error', toolCallId: 'c', errorText },
      ),
    ).toMatchObject([{}, { parts: [end] }])
    // An input that was refused is a retry, with this text or without it.
    expect(readChunks({ type: 'tool-input-error', ...chunk, errorText })).toMatchObject([
      {},
      { parts: [{ part_kind: 'retry-prompt', content, ...ids }] },
    ])
  })
})

describe('TP-47 metadata of providers', () => {
  const providerMetadata = { acme: { x: 1 }, other: { y: [2] } }
  const started = (type: string) => [
    { type: `${type}-start`, id: 'i', providerMetadata },
    { type: `${type}-end`, id: 'i' },
  ]
  const file = { url: 'https://x.test/a.png', mediaType: 'image/png', providerMetadata }
  const source = { sourceId: 's', url: 'https://x.test', mediaType: 'x/y', title: 'T' }
  const called = { toolCallId: 'c', toolName: 'f', input: {} }
  const chunks: readonly (readonly [string, readonly object[]])[] = [
    ['text', started('text')],
    ['reasoning', started('reasoning')],
    ['file', [{ type: 'file', ...file }]],
    ['reasoning-file', [{ type: 'reasoning-file', ...file }]],
    ['source-url', [{ type: 'source-url', ...source, providerMetadata }]],
    ['source-document', [{ type: 'source-document', ...source, providerMetadata }]],
    ['custom', [{ type: 'custom', kind: 'acme.box', providerMetadata }]],
    ['a call', [{ type: 'tool-input-available', ...called, providerMetadata }]],
    [
      'an output',
      [
        { type: 'tool-input-available', ...called },
        { type: 'tool-output-available', toolCallId: 'c', output: 1, providerMetadata },
      ],
    ],
    [
      'an error',
      [
        { type: 'tool-input-available', ...called },
        { type: 'tool-output-error', toolCallId: 'c', errorText: 'no', providerMetadata },
      ],
    ],
  ]

  test.each(chunks)('TP-47 of %s is kept, from the stream and back', (name, list) => {
    const holders = readChunks(...list).flatMap((message): readonly object[] =>
      message.message_type === 'system' ? [message.event_data as object] : message.parts,
    )
    expect(holders.at(-1)).toMatchObject({ provider_metadata: providerMetadata })
    const { value } = fromUIChunks(list as UIMessageChunk[], { clock })
    const side = name === 'a call' ? 'callP' : /output|error/.test(name) ? 'resultP' : 'p'
    for (const carry of ['public', 'all'] as const)
      expect(toUIMessages(value, { carry })[0]!.parts.at(-1)).toMatchObject({
        [`${side}roviderMetadata`]: providerMetadata,
      })
  })
})

describe('TP-54 the reason why a stream finished', () => {
  const said = (id: string) => [
    { type: 'start-step' },
    { type: 'text-start', id },
    { type: 'text-end', id },
    { type: 'finish-step' },
  ]
  const finish = { type: 'finish', finishReason: 'length' }
  const reasons = (...chunks: readonly object[]) =>
    fromUIChunks([...chunks, finish] as UIMessageChunk[], { clock }).value.turns.map((turn) =>
      (turn as AgentTurn).messages.map(
        (message) => (message as { finish_reason?: string }).finish_reason,
      ),
    )

  test('TP-54 is that of its last response, in one step, in several, and in several turns', () => {
    expect(reasons(...said('a'))).toEqual([['length']])
    expect(reasons(...said('a'), ...said('b'), ...said('c'))).toEqual([
      [undefined, undefined, 'length'],
    ])
    const next = { type: 'data-tp-turn', id: 't', data: { turn_id: 't', agent_id: 'bob' } }
    expect(reasons(...said('a'), next, ...said('b'), ...said('c'))).toEqual([
      [undefined],
      [undefined, 'length'],
    ])
    expect(reasons(...said('a'), { type: 'data-note', data: 1 })).toEqual([['length', undefined]])
    expect(reasons()).toEqual([[]])
  })
})

describe('TP-25 bytes of both alphabets', () => {
  const data = ['AAAA', '+/+/', '----', '____', 'a-b_', 'a-bc', 'a_bc', '+bc=', '-bc=', '']

  test.each(data)(
    'TP-25 %j of a person, of an answer and in a run comes back as it was',
    (bytes) => {
      const content = { kind: 'binary', data: bytes, media_type: 'x/y', identifier: 'i' } as const
      const prompt: MessagePart = { part_kind: 'user-prompt', content: ['see', content] }
      const thread = sampleThread([
        userTurn([prompt]),
        agentTurn('ada', [
          response('ada', 1, { part_kind: 'file', content }, text('x')),
          { message_type: 'request', timestamp: time, agent_id: 'ada', parts: [prompt] },
        ]),
      ])
      const messages = plain(toUIMessages(thread, { carry: 'all' }))
      expect(fromUIMessages(messages, { carrier: 'trust' }).value).toEqual(thread)
      const chunks = plain([...encodeUIMessage(messages[1]!)])
      expect(fromUIChunks(chunks, { messages: messages.slice(0, 1) }).value).toEqual(thread)
      // A page is shown the standard alphabet, and sends it back.
      const shown = bytes.replaceAll('-', '+').replaceAll('_', '/')
      const sent = JSON.stringify(fromUIMessages(plain(toUIMessages(thread)), { clock }).value)
      expect(sent.split(`"data":${JSON.stringify(shown)}`)).toHaveLength(4)
    },
  )
})

describe('TP-06 agents that messages name', () => {
  const names: readonly object[] = [
    { agent_id: 'bob', agent_name: 'Bob' },
    { agent_id: 'bob' },
    { agent_id: 'bob', agent_name: '' },
  ]
  const registered = (agent_id: string, agent_name: string) => ({
    [agent_id]: { agent_id, agent_name, created_at: time },
  })

  test.each(names)('TP-06 %j is registered with a name', (entry) => {
    const { agent_name = 'bob' } = entry as { agent_name?: string }
    const message: UIMessage = {
      id: 'm',
      role: 'assistant',
      metadata: { threadprotocol: { turns: [entry] } },
      parts: [{ type: 'text', text: 'x' }],
    }
    const { value } = fromUIMessages([message], { clock, carrier: 'trust' })
    expect(value.agents).toEqual(registered('bob', agent_name))
    expect(validateThread(value).issues).toEqual([])
    // Who is not believed is the agent of the options.
    const ignored = fromUIMessages([message], { clock }).value
    expect(ignored.agents).toEqual(registered('assistant', 'Assistant'))
    expect(validateThread(ignored).issues).toEqual([])
  })
})

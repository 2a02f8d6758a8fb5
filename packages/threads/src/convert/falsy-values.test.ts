/** Results, arguments and texts that look like nothing, in each format and back. */
import { manualClock } from '@skein/base'
import { describe, expect, test } from 'vitest'
import { plain } from '../../test/plain.ts'
import { fixed } from '../../test/pydantic-trips.ts'
import {
  agentTurn,
  answer,
  at,
  call,
  event,
  request,
  response,
  text,
  thread,
  userTurn,
} from '../../test/samples.ts'
import { threadFromEvents } from '../events/event-to-thread.ts'
import { toolCalls, type AgentTurn, type Thread } from '../index.ts'
import { toAgUiEvents } from './ag-ui/index.ts'
import { fromUIMessages, toUIMessages } from './ai-sdk/index.ts'
import { fromPydanticAI, toPydanticAI } from './pydantic-ai/index.ts'
import { fromUppMessages } from './upp/from-upp.ts'
import { toUppMessages } from './upp/to-upp.ts'

const clock = manualClock(Date.UTC(2026, 0, 1))
/** Each in a list of its own, which `test.each` takes apart. */
const values: [unknown][] = [
  [''],
  [0],
  [false],
  [null],
  [[]],
  [{}],
  ['0'],
  ['null'],
  [[0]],
  [{ a: false }],
]

/** A call with this result, beside another one, between texts that are empty. */
function holding(content: unknown): Thread {
  return thread([
    userTurn(''),
    agentTurn('ada', [
      response('ada', 1, text(''), call('c1'), call('c2')),
      event('note', 2, content),
      request('ada', 3, answer('c1', 'look_up', content), answer('c2')),
      response('ada', 4, text('')),
    ]),
  ])
}

/** The results of a thread, the content of its texts, and its events. */
function contents(value: Thread): unknown {
  const turns = value.turns.filter((turn) => turn.turn_type === 'agent')
  const messages = turns.flatMap((turn): AgentTurn['messages'] => turn.messages)
  return {
    prompts: value.turns.flatMap((turn) =>
      turn.turn_type === 'user'
        ? turn.parts.map((part) => (part as { content: unknown }).content)
        : [],
    ),
    results: toolCalls(value).map(({ call: made, answer: end }) => [
      made.tool_call_id,
      end?.content,
    ]),
    texts: messages.flatMap((message) =>
      'parts' in message
        ? message.parts.flatMap((part) => (part.part_kind === 'text' ? [part.content] : []))
        : [],
    ),
    events: messages.flatMap((message) =>
      message.message_type === 'system' ? [message.event_data] : [],
    ),
  }
}

const trips: Readonly<Record<string, (value: Thread) => Thread>> = {
  'UI messages': (value) => fromUIMessages(plain(toUIMessages(value)), { clock }).value,
  'UI messages with the thread': (value) =>
    fromUIMessages(plain(toUIMessages(value, { carry: 'all' })), { carrier: 'trust' }).value,
  'Pydantic AI': (value) => fromPydanticAI(toPydanticAI(value).value, fixed).value,
  'UPP messages': (value) => fromUppMessages(plain(toUppMessages(value).value), { clock }).value,
}

describe.each(Object.keys(trips))('TP-47 through %s', (name) => {
  const hasEvents = name.startsWith('UI')

  test.each(values)(
    'TP-47 a result of %j, an event with it and empty texts come back',
    (content) => {
      const back = contents(trips[name]!(holding(content)))
      const expected = contents(holding(content)) as object
      expect(back).toEqual(hasEvents ? expected : { ...expected, events: [] })
    },
  )
})

test.each(values)('TP-47 a result of %j from events and to AG-UI', (content) => {
  const turn = { turnId: 't' }
  const { value } = threadFromEvents([
    { type: 'thread_created', at: at(0), threadId: 'th' },
    { type: 'turn_start', at: at(1), ...turn, agentId: 'ada' },
    {
      type: 'tool_execution_end',
      at: at(2),
      ...turn,
      toolCallId: 'c1',
      toolName: 'look_up',
      outcome: 'success',
      result: content,
    },
    { type: 'turn_end', at: at(3), ...turn, outcome: 'completed' },
  ])
  expect((value.turns[0] as AgentTurn).messages).toMatchObject([{ parts: [{ content }] }])
  const results = toAgUiEvents(holding(content)).value.flatMap((shown) =>
    shown.type === 'TOOL_CALL_RESULT' ? [(shown as { content?: unknown }).content] : [],
  )
  expect(results).toEqual([
    typeof content === 'string' ? content : JSON.stringify(content),
    'found',
  ])
})

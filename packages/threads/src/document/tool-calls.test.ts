import { expect, test } from 'vitest'
import {
  agentTurn,
  answer,
  call,
  event,
  request,
  response,
  text,
  thread,
  userTurn,
} from '../../test/samples.ts'
import { fromPydanticAI } from '../convert/pydantic-ai/index.ts'
import { pendingToolCalls, toolCalls, type MessagePart, type Thread } from '../index.ts'

function pending(document: Thread): string[] {
  return pendingToolCalls(document).map((part) => part.tool_call_id)
}

function settled(id: string, outcome: string, status = 'error'): MessagePart {
  return { ...answer(id), status, outcome } as unknown as MessagePart
}

test('TP-32 nothing about pending calls is stored; the state is derived', () => {
  const waiting = thread([agentTurn('ada', [response('ada', 1, call('a'))])])
  const said = [{ part_kind: 'tool-call', tool_name: 'pay', tool_call_id: 'a', args: {} }]
  const { value: imported } = fromPydanticAI([
    { kind: 'request', parts: [{ part_kind: 'user-prompt', content: 'Pay.' }] },
    { kind: 'response', parts: said },
  ])
  expect(toolCalls(imported)).toMatchObject([{ state: 'pending' }])
  expect(JSON.stringify(imported)).not.toMatch(/pending|awaiting|deferred|approv/)
  const [, turn] = imported.turns
  expect(turn?.turn_type === 'agent' && turn.messages[0]).toMatchObject({ parts: said })
  expect(toolCalls(waiting)).toMatchObject([
    { state: 'pending', agent_id: 'ada', pointer: '/turns/0/messages/0/parts/0' },
  ])
})

test('TP-33 a call is pending until its return, wherever that stands', () => {
  const first = agentTurn('ada', [
    response('ada', 1, call('a'), call('b')),
    event('note', 2),
    request('ada', 3, answer('b')),
  ])
  expect(pending(thread([first]))).toEqual(['a'])
  expect(pending(thread([first, agentTurn('ada', [request('ada', 4, answer('a'))])]))).toEqual([])
  expect(pending(thread([first, userTurn([answer('a')], 4)]))).toEqual([])
})

test('TP-33 ids that repeat, retries, and tools of the provider', () => {
  const reused = agentTurn('ada', [
    response('ada', 1, call('x', 'one')),
    request('ada', 2, answer('x', 'one')),
    response('ada', 3, call('x', 'two')),
  ])
  expect(pendingToolCalls(thread([reused])).map((part) => part.tool_name)).toEqual(['two'])

  const twice = agentTurn('ada', [
    response('ada', 1, call('x', 'one'), call('x', 'two')),
    request('ada', 2, answer('x', 'two')),
  ])
  expect(pendingToolCalls(thread([twice])).map((part) => part.tool_name)).toEqual(['one'])

  const both = agentTurn('ada', [
    response('ada', 1, call('x', 'one'), call('x', 'two'), call('x', 'three')),
    request('ada', 2, answer('x', 'three'), answer('x', 'two'), answer('x', 'one')),
    response('ada', 3, call('x', 'four'), call('x', 'five')),
    request('ada', 4, answer('x', 'five')),
  ])
  expect(pendingToolCalls(thread([both])).map((part) => part.tool_name)).toEqual(['four'])

  const retry = (tool_name: string | null): MessagePart => ({
    part_kind: 'retry-prompt',
    content: 'no',
    tool_name,
    tool_call_id: 'x',
  })
  const retried = (name: string | null): Thread =>
    thread([agentTurn('ada', [response('ada', 1, call('x')), request('ada', 2, retry(name))])])
  expect(pending(retried('look_up'))).toEqual([])
  expect(toolCalls(retried('look_up'))[0]?.state).toBe('retried')
  expect(pending(retried(null))).toEqual(['x'])

  const builtin = {
    part_kind: 'builtin-tool-call',
    tool_name: 'search',
    tool_call_id: 's',
    args: {},
  } as const
  expect(pending(thread([agentTurn('ada', [response('ada', 1, builtin, text('x'))])]))).toEqual([])
  expect(
    pending(
      thread([agentTurn('ada', [request('ada', 1, answer('x')), response('ada', 2, call('x'))])]),
    ),
  ).toEqual(['x'])
})

test('TP-33 pending calls are the very parts, oldest first', () => {
  const parts = [call('b'), call('a'), call('b')]
  const document = thread([agentTurn('ada', [response('ada', 1, ...parts)])])
  expect(pendingToolCalls(document)).toEqual(parts)
  expect(pendingToolCalls(document)[1]).toBe(parts[1])
})

test('TP-34 called, completed, rejected, failed and interrupted are told apart', () => {
  const ids = ['called', 'completed', 'denied', 'failed', 'cut', 'plain']
  const document = thread([
    agentTurn('ada', [
      response('ada', 1, ...ids.map((id) => call(id))),
      request(
        'ada',
        2,
        answer('completed'),
        settled('denied', 'denied'),
        settled('failed', 'failed'),
        settled('cut', 'interrupted'),
      ),
      request('ada', 3, { ...answer('plain'), status: 'validation_error' } as MessagePart),
    ]),
  ])
  expect(toolCalls(document).map(({ state }) => state)).toEqual([
    'pending',
    'completed',
    'denied',
    'failed',
    'interrupted',
    'failed',
  ])
  expect(toolCalls(document)[1]?.answer).toMatchObject({ content: 'found' })
})

test('turns of an unknown type are passed over', () => {
  const document = thread([
    { turn_type: 'robot' } as never,
    agentTurn('ada', [response('ada', 1, call('a'))]),
  ])
  expect(pending(document)).toEqual(['a'])
})

test('TP-34 each end of a call: its state, its answer, who called and where', () => {
  const retry = (rest: object) =>
    ({ part_kind: 'retry-prompt', content: 'again', ...rest }) as MessagePart
  const parts: [MessagePart, string][] = [
    [answer('a'), 'completed'],
    [{ ...answer('b'), status: 'error' } as MessagePart, 'failed'],
    [{ ...answer('c'), status: 'validation_error' } as MessagePart, 'failed'],
    [settled('d', 'failed', 'success'), 'failed'],
    [settled('e', 'denied', 'success'), 'denied'],
    [settled('f', 'interrupted', 'error'), 'interrupted'],
    [retry({ tool_name: 'look_up', tool_call_id: 'g' }), 'retried'],
    [settled('h', 'success', 'error'), 'failed'],
  ]
  const ids = [...'abcdefgh']
  const document = thread([
    agentTurn('bob', [
      event('note', 1),
      response('bob', 1, text('x'), ...ids.map((id) => call(id)), call('open')),
      request(
        'bob',
        2,
        // Neither a retry without a tool nor one without an id, nor an answer to nothing, ends a call.
        retry({ tool_call_id: 'open' }),
        retry({ tool_name: 'look_up' }),
        answer('nobody'),
        null as never,
        ...parts.map(([part]) => part),
      ),
    ]),
    { turn_type: 'pause' } as never,
    userTurn([call('of the user'), answer('of the user')]),
  ])
  const records = toolCalls(document)
  expect(records).toEqual([
    ...parts.map(([part, state], index) => ({
      call: call(ids[index]!),
      state,
      answer: part,
      agent_id: 'bob',
      pointer: `/turns/0/messages/1/parts/${index + 1}`,
    })),
    {
      call: call('open'),
      state: 'pending',
      answer: undefined,
      agent_id: 'bob',
      pointer: '/turns/0/messages/1/parts/9',
    },
    {
      call: call('of the user'),
      state: 'completed',
      answer: answer('of the user'),
      agent_id: '',
      pointer: '/turns/2/parts/0',
    },
  ])
  expect(pending(document)).toEqual(['open'])
})

test('TP-V2 of calls with one id the latest open one is answered, and each once', () => {
  const document = thread([
    agentTurn('ada', [
      response('ada', 1, call('x', 'one'), call('x', 'two'), call('x', 'three')),
      request('ada', 2, answer('x', 'three'), answer('x', 'two')),
      response('ada', 3, call('x', 'four')),
      request('ada', 4, answer('x', 'four'), answer('x', 'one'), answer('x', 'none')),
    ]),
  ])
  expect(
    toolCalls(document).map(({ call: made, answer: end }) => [made.tool_name, end?.tool_name]),
  ).toEqual([
    ['one', 'one'],
    ['two', 'two'],
    ['three', 'three'],
    ['four', 'four'],
  ])
})

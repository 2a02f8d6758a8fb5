import { sequentialIds } from '@skein/base'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  AssistantMessage,
  ToolResultMessage,
  UserMessage,
  type Message,
} from '../contract/message.ts'
import type { Warning } from '../contract/turn.ts'
import { resultText } from '../contract/result-text.ts'
import { repairTranscript, toolNameOf } from './transcript.ts'
import { orderedBlocks, orderMetadata } from './block-order.ts'
import { safeToolCallId } from './tool-call-id.ts'
import { processorMs } from '../../../../conformance/support/processor-time.ts'

const call = (toolCallId: string, toolName = 'f') => ({ toolCallId, toolName, arguments: {} })
const calls = (...ids: string[]) =>
  new AssistantMessage(
    '',
    ids.map((id) => call(id)),
  )
const results = (...ids: string[]) =>
  new ToolResultMessage(ids.map((toolCallId) => ({ toolCallId, result: toolCallId })))
const user = new UserMessage('hi')

function repair(...messages: Message[]): { repaired: readonly Message[]; warnings: Warning[] } {
  const warnings: Warning[] = []
  return { repaired: repairTranscript(messages, warnings), warnings }
}
const answered = (messages: readonly Message[]) =>
  messages.map((message) =>
    message.type === 'tool_result' ? message.results.map((r) => r.toolCallId).join() : message.type,
  )

describe('repairTranscript', () => {
  test('a whole conversation is passed on as the same list', () => {
    const messages = [user, calls('a', 'b'), results('a', 'b'), new AssistantMessage('done'), user]
    expect(repairTranscript(messages)).toBe(messages)
    const split = [user, calls('a', 'b'), results('b'), results('a')]
    expect(repairTranscript(split)).toBe(split)
  })

  test('missing results become errors before the next message', () => {
    const { repaired, warnings } = repair(calls('a', 'b'), results('b'), user, calls('c'))
    expect(answered(repaired)).toEqual(['assistant', 'b', 'a', 'user', 'assistant', 'c'])
    expect(repaired[2]).toMatchObject({ results: [{ isError: true, toolName: 'f' }] })
    expect(warnings.map((warning) => warning.code)).toEqual([
      'missing_tool_result',
      'missing_tool_result',
    ])
  })

  test('results of no open call, and second answers, are dropped', () => {
    const { repaired, warnings } = repair(
      results('x'),
      user,
      calls('a'),
      results('a', 'y'),
      results('a'),
      user,
      results('a'),
    )
    expect(answered(repaired)).toEqual(['user', 'assistant', 'a', 'user'])
    expect(warnings).toHaveLength(4)
    expect(warnings[0]?.message).toContain('"x"')
  })

  test('an id that comes again in a later round is open again', () => {
    const messages = [calls('a'), results('a'), calls('a'), results('a')]
    expect(repairTranscript(messages)).toBe(messages)
  })

  test('two calls of one id need two results', () => {
    const { repaired } = repair(calls('a', 'a'), results('a'))
    expect(answered(repaired)).toEqual(['assistant', 'a', 'a'])
  })

  test('is linear in a long conversation', () => {
    const ids = sequentialIds('c')
    const long = Array.from({ length: 20_000 }, () => ids()).flatMap((id) => [
      calls(id),
      results(id),
    ])
    const start = processorMs()
    expect(repairTranscript(long)).toBe(long)
    expect(processorMs() - start).toBeLessThan(1000)
  })
})

describe('orderedBlocks', () => {
  const text = (value: string) => ({ type: 'text' as const, text: value })
  const kinds = (message: AssistantMessage, provider = 'p') =>
    orderedBlocks(message, provider).map(({ block, call: each }) =>
      each ? each.toolCallId : block.type === 'text' && block.text,
    )
  const interleaved = (order: string[]) =>
    new AssistantMessage([text('1'), text('2')], [call('a'), call('b')], {
      metadata: { p: { order } },
    })

  test('the order of the same provider, calls last for others', () => {
    const message = interleaved(['block', 'call', 'block', 'call'])
    expect(kinds(message)).toEqual(['1', 'a', '2', 'b'])
    expect(kinds(message, 'q')).toEqual(['1', '2', 'a', 'b'])
  })

  test('an order that does not fit is ignored', () => {
    expect(kinds(interleaved(['call', 'block']))).toEqual(['1', '2', 'a', 'b'])
  })

  test('is kept only when a call came before a block', () => {
    expect(orderMetadata(['text', 'tool_call', 'tool_call'])).toEqual({})
    expect(orderMetadata(['reasoning', 'tool_call', 'text'])).toEqual({
      order: ['block', 'call', 'block'],
    })
  })
})

test('toolNameOf finds the called tool', () => {
  const nameOf = toolNameOf([new AssistantMessage('', [call('a', 'weather')])])
  expect(nameOf('a')).toBe('weather')
  expect(nameOf('b')).toBeUndefined()
})

describe('safeToolCallId', () => {
  test('keeps what the vendor takes', () => {
    expect(safeToolCallId('call_1', { pattern: /^\w+$/, maxLength: 40 })).toBe('call_1')
  })

  test.each([
    { pattern: /^[\w-]+$/, maxLength: 40 },
    { pattern: /^[a-zA-Z0-9]{9}$/, maxLength: 9 },
    { pattern: /^[^]+$/, maxLength: 64 },
  ])('maps others the same way each time: $maxLength', (rule) => {
    for (const id of ['google_toolcall:0:x', 'x'.repeat(100), '', 'ünï']) {
      const safe = safeToolCallId(id, rule)
      expect(safe).toMatch(rule.pattern)
      expect(safe.length).toBeLessThanOrEqual(rule.maxLength)
      expect(safeToolCallId(id, rule)).toBe(safe)
    }
    expect(safeToolCallId('a:b', rule)).not.toBe(safeToolCallId('a:c', rule))
  })
})

describe('resultText', () => {
  const cycle: Record<string, unknown> = {}
  cycle['self'] = cycle
  test.each([
    ['text', 'as it is', 'as it is'],
    ['nothing', undefined, ''],
    ['null', null, 'null'],
    ['an object', { a: [1] }, '{"a":[1]}'],
    ['bytes', new Uint8Array(3), '"[binary data, 3 bytes]"'],
    ['a buffer inside', { b: Buffer.from('hey') }, '{"b":"[binary data, 3 bytes]"}'],
    ['a big integer', { n: 10n }, '{"n":"10"}'],
    ['an error', new TypeError('no'), '{"name":"TypeError","message":"no"}'],
    ['a function', () => 1, ''],
    ['bytes as JSON', [1, { b: { $bytes: 'aGV5' } }], '[1,{"b":"[binary data, 3 bytes]"}]'],
    ['a time', { at: new Date(0) }, '{"at":"1970-01-01T00:00:00.000Z"}'],
    ['bytes behind toJSON', { toJSON: () => [new Uint8Array(3)] }, '["[binary data, 3 bytes]"]'],
    ['a member that is undefined', { a: undefined, b: [undefined] }, '{"b":[null]}'],
  ])('%s', (_, result, expected) => {
    expect(resultText(result)).toBe(expected)
  })

  test('law: data that is JSON already is written as JSON writes it', () => {
    const isMarked = (text: string): boolean => text.includes('"$bytes"')
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const json = JSON.stringify(value)
        if (isMarked(json)) return
        expect(resultText(value)).toBe(typeof value === 'string' ? value : json)
      }),
      { seed: 7, numRuns: 300 },
    )
  })

  test('what JSON cannot say does not throw', () => {
    expect(resultText(cycle)).toMatch(/^\[The result cannot be written as JSON/)
  })
})

test('UPP-062 a message of results that loses an orphan keeps its id, time and metadata', () => {
  const call = { toolCallId: 'c', toolName: 'f', arguments: {} }
  const results = [
    { toolCallId: 'c', toolName: 'f', result: 1 },
    { toolCallId: 'gone', toolName: 'f', result: 2 },
  ]
  const told = new ToolResultMessage(results, {
    id: 'own',
    timestamp: new Date(7),
    metadata: { acme: { kept: true } },
  })
  const warnings: Warning[] = []
  const repaired = repairTranscript([new AssistantMessage('', [call]), told], warnings)
  expect(repaired[1]).toMatchObject({
    id: 'own',
    timestamp: new Date(7),
    metadata: { acme: { kept: true } },
    results: [{ toolCallId: 'c' }],
  })
  expect(warnings).toHaveLength(1)
})

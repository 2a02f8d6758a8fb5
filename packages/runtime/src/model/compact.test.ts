import fc from 'fast-check'
import { expect, test } from 'vitest'
import { AssistantMessage, ToolResultMessage, UserMessage, type Message } from '@skein/ai'
import { chooseCut, summaryRequest } from './compact.ts'
import { estimateViewTokens } from './message-text.ts'
import { summaryMessage } from './view.ts'

const user = (text: string) => new UserMessage(text)
const says = (text: string) => new AssistantMessage(text)
const asks = (...ids: string[]) =>
  new AssistantMessage(
    '',
    ids.map((toolCallId) => ({ toolCallId, toolName: 'look', arguments: { a: 1 } })),
  )
const gives = (...ids: string[]) =>
  new ToolResultMessage(ids.map((toolCallId) => ({ toolCallId, toolName: 'look', result: 'seen' })))

test('tokens grow with the text, and a picture costs the same whatever its size', () => {
  const [short, long] = [user('x'), user('x'.repeat(4001))]
  expect(estimateViewTokens([long]) - estimateViewTokens([short])).toBe(1000)
  expect(estimateViewTokens([])).toBe(0)
  const picture = (size: number) =>
    new UserMessage([
      { type: 'text', text: 'look' },
      { type: 'image', mimeType: 'image/png', source: { type: 'base64', data: 'A'.repeat(size) } },
    ])
  expect(estimateViewTokens([picture(4)])).toBe(estimateViewTokens([picture(400_000)]))
  expect(estimateViewTokens([picture(4)])).toBeGreaterThanOrEqual(1000)
  expect(estimateViewTokens([picture(4)])).toBeLessThan(1100)
})

test.each([
  ['keeps what it is told to', [user('1'), says('2'), user('3'), says('4')], 2, 2],
  ['nothing to gain', [user('1'), says('2'), user('3')], 2, undefined],
  ['shorter than what is kept', [user('1')], 20, undefined],
  ['keeps calls with their results', [user('1'), says('2'), asks('a'), gives('a')], 1, 2],
  [
    'keeps results that come apart',
    [user('1'), says('2'), asks('a', 'b'), gives('a'), gives('b')],
    1,
    2,
  ],
  ['keeps calls that wait', [user('1'), says('2'), asks('a'), user('hurry'), user('please')], 1, 2],
  [
    'cuts within one long run of tools',
    [user('1'), asks('a'), gives('a'), asks('b'), gives('b')],
    2,
    3,
  ],
  ['ids that begin again', [user('1'), asks('0'), gives('0'), asks('0'), gives('0')], 2, 3],
  [
    'a call whose id was given again waits for nothing',
    [user('1'), asks('0'), user('2'), asks('0'), gives('0')],
    2,
    3,
  ],
  ['always keeps something', [user('1'), says('2'), user('3')], 0, 2],
  ['never one message for one', [user('1'), asks('a'), gives('a')], 2, undefined],
])('%s', (_title, messages, keepMessages, cut) => {
  expect(chooseCut(messages as Message[], { keepMessages })).toBe(cut)
})

test('no call is parted from its results, and what stays begins well', () => {
  const id = fc.constantFrom('a', 'b', 'c', 'd')
  const message = fc.oneof(
    fc.constant('user' as const).map(() => user('u')),
    fc.constant('says').map(() => says('s')),
    fc.uniqueArray(id, { minLength: 1 }).map((ids) => asks(...ids)),
    fc.uniqueArray(id, { minLength: 1 }).map((ids) => gives(...ids)),
  )
  fc.assert(
    fc.property(fc.array(message, { maxLength: 30 }), fc.nat(10), (messages, keepMessages) => {
      const cut = chooseCut(messages, { keepMessages })
      if (cut === undefined) return
      expect(cut).toBeGreaterThanOrEqual(2)
      expect(messages.length - cut).toBeGreaterThanOrEqual(Math.max(1, keepMessages))
      expect(messages[cut]!.type).not.toBe('tool_result')
      for (const [call, place] of pairs(messages)) expect(call < cut).toBe(place < cut)
    }),
    { numRuns: process.env['SKEIN_DEEP'] ? 20_000 : 300 },
  )

  /** Places of each call and of its result; of calls that wait, the end. */
  function pairs(messages: readonly Message[]): [number, number][] {
    return messages.flatMap((one, place) => {
      const calls = one.type === 'assistant' ? (one.toolCalls ?? []) : []
      return calls.flatMap(({ toolCallId }) => {
        const next = messages.findIndex((other, at) => at > place && has(other, toolCallId))
        const until = next < 0 ? messages.length : next
        const results = messages.flatMap((other, at) =>
          at > place && at < until && isResult(other, toolCallId) ? [at] : [],
        )
        // A call whose id was given again before an answer will never get one.
        if (results.length === 0)
          return next < 0 ? [[place, messages.length] as [number, number]] : []
        return results.map((at): [number, number] => [place, at])
      })
    })
  }

  function has(one: Message, toolCallId: string): boolean {
    const calls = one.type === 'assistant' ? (one.toolCalls ?? []) : []
    return calls.some((call) => call.toolCallId === toolCallId)
  }

  function isResult(one: Message, toolCallId: string): boolean {
    return one.type === 'tool_result' && one.results.some((each) => each.toolCallId === toolCallId)
  }
})

test('a long history leaves as much as can go', () => {
  const messages = Array.from({ length: 100 }, (_, index) =>
    index % 2 === 0 ? user('u') : says('s'),
  )
  expect(chooseCut(messages, { keepMessages: 20 })).toBe(80)
})

test('what is asked holds the words, the calls and the results, and no bytes', () => {
  const data = 'QUJD'.repeat(100)
  const request = summaryRequest([
    new UserMessage([
      { type: 'text', text: 'what is /a/b.png?' },
      { type: 'image', mimeType: 'image/png', source: { type: 'base64', data } },
    ]),
    asks('a'),
    new ToolResultMessage([
      {
        toolCallId: 'a',
        result: [{ type: 'image', mimeType: 'image/png', source: { type: 'base64', data } }],
      },
      { toolCallId: 'b', toolName: 'look', result: 'x'.repeat(9000), isError: true },
    ]),
    says('a cat'),
  ])
  expect(request).toContain('[user] what is /a/b.png?\n(image, image/png)')
  expect(request).toContain('(calls look with {"a":1})')
  expect(request).toContain('[result] ["(image, image/png)"]')
  expect(request).toContain('[error of look] xxx')
  expect(request).toContain('(5000 characters more)')
  expect(request).toContain('[assistant] a cat')
  expect(request).not.toContain('QUJD')
})

test('the same summary is the same message', () => {
  expect(summaryMessage('so far')).toEqual(summaryMessage('so far'))
  expect(summaryMessage('so far').text).toContain('so far')
  expect(summaryMessage('so far', { id: 'x' }).id).toBe('x')
  expect(summaryMessage('other').id).not.toBe(summaryMessage('so far').id)
})

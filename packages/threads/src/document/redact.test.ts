import { describe, expect, test } from 'vitest'
import {
  agentTurn,
  answer,
  call,
  fullThread,
  request,
  response,
  text,
  thread,
  userTurn,
} from '../../test/samples.ts'
import { redactThread } from './redact.ts'
import { validateThread } from './validate.ts'

const secret = 'sk-"quoted"-\n-key'

describe('redactThread', () => {
  const sample = thread([
    userTurn(`my key is ${secret}`),
    agentTurn('ada', [
      response(
        'ada',
        1,
        text(`I got ${secret}.`),
        call('c1', 'save', JSON.stringify({ key: secret })),
      ),
      request('ada', 2, answer('c1', 'save', { nested: [{ [secret]: secret }] })),
    ]),
  ])

  test('no spelling of a secret remains, in keys and argument text neither', () => {
    const { thread: clean, redacted } = redactThread(sample, { secrets: [secret] })
    const printed = JSON.stringify(clean)
    expect(printed).not.toContain('quoted')
    expect(validateThread(clean).issues.filter((issue) => issue.severity === 'error')).toEqual([])
    expect(redacted).toContain('/turns/0/parts/0/content')
    expect(redacted).toContain('/turns/1/messages/0/parts/1/args')
    const args = (clean.turns[1] as unknown as { messages: { parts: { args: string }[] }[] })
      .messages[0]!.parts[1]!.args
    expect(JSON.parse(args)).toEqual({ key: '[redacted]' })
  })

  test('what holds no secret is shared, and the original is left alone', () => {
    const full = fullThread()
    const before = JSON.stringify(full)
    const { thread: same, redacted } = redactThread(full, { secrets: ['nowhere'] })
    expect(same).toBe(full)
    expect(redacted).toEqual([])
    const { thread: clean } = redactThread(full, { secrets: ['Summarise.'] })
    expect(clean.turns[1]).toBe(full.turns[1])
    expect(JSON.stringify(full)).toBe(before)
  })

  test('takes out patterns and whole values, by pointer or by test', () => {
    const cards = thread([userTurn('card 4111 1111 1111 1111, thanks')])
    const byPattern = redactThread(cards, { patterns: [/\b(?:\d{4} ?){4}\b/], replacement: '#' })
    expect(byPattern.thread.turns[0]).toMatchObject({ parts: [{ content: 'card #, thanks' }] })
    const byPointer = redactThread(cards, { remove: ['/turns/0/parts/0/content'] })
    expect(byPointer.thread.turns[0]).toMatchObject({ parts: [{ content: '[redacted]' }] })
    const byTest = redactThread(fullThread(), { remove: (pointer) => pointer.endsWith('/data') })
    expect(byTest.redacted).toHaveLength(2)
  })

  test('a word that is also a name of the protocol does not break the structure', () => {
    const { thread: clean } = redactThread(sample, { secrets: ['text', 'user', 'success'] })
    expect(validateThread(clean).issues.filter((issue) => issue.severity === 'error')).toEqual([])
  })
})

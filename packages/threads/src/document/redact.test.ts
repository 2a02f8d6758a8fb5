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

describe('TP-52 what is taken out', () => {
  const holding = (value: unknown) => thread([], { metadata: { value } })
  const valueOf = (redacted: ReturnType<typeof redactThread>) =>
    (redacted.thread as { metadata?: { value?: unknown } }).metadata?.value

  test('TP-52 the longest secret is taken as a whole, each place is named once, in order', () => {
    const made = redactThread(
      holding({ a: 'key-1 and key-1-long', list: ['key-1', 'x'], n: 1, z: null }),
      {
        secrets: ['key-1', 'key-1-long', ''],
        replacement: '#',
      },
    )
    expect(valueOf(made)).toEqual({ a: '# and #', list: ['#', 'x'], n: 1, z: null })
    expect(made.redacted).toEqual(['/metadata/value/a', '/metadata/value/list/0'])
  })

  test('TP-52 a secret with signs of patterns is only text; patterns keep their flags, and find every place', () => {
    const made = redactThread(holding('a.c abc A.C (x) [y] {z} $1 ^ | * + ? \\'), {
      secrets: ['a.c', '(x)', '[y]', '{z}', '$1', '^', '|', '*', '+', '?', '\\'],
      replacement: '#',
    })
    expect(valueOf(made)).toBe('# abc A.C # # # # # # # # # #')
    const flagged = redactThread(holding('Abc abc\nABC'), {
      patterns: [/abc/iy],
      replacement: '$&',
    })
    expect(valueOf(flagged)).toBe('$& $&\n$&')
    const lines = redactThread(holding('a1\na2'), { patterns: [/^a/m, /2|9/], replacement: '#' })
    expect(valueOf(lines)).toBe('#1\n##')
  })

  test('TP-52 a test for removal is asked with place and value, and may take structure too; the whole thread it may not', () => {
    const asked: [string, unknown][] = []
    const full = fullThread()
    redactThread(full, {
      remove: (pointer, value) => {
        asked.push([pointer, value])
        return false
      },
    })
    expect(asked.every(([pointer]) => pointer !== '')).toBe(true)
    const seen = new Map(asked)
    expect(seen.get('/turns/0/submitted_at')).toBe((full.turns[0] as never)['submitted_at'])
    const { thread: clean, redacted } = redactThread(full, {
      remove: (pointer, value) => pointer === '/version' && value === '2.0.0',
    })
    expect(clean.version).toBe('[redacted]')
    expect(redacted).toEqual(['/version'])
    expect(redactThread(full, { remove: [''] }).thread).toBe(full)
  })

  test('TP-52 a key that holds a secret is renamed, and named by its place', () => {
    const made = redactThread(holding({ 'my key': 1, version: 'key' }), { secrets: ['key'] })
    expect(valueOf(made)).toEqual({ 'my [redacted]': 1, version: 'key' })
    expect(made.redacted).toEqual(['/metadata/value/my key'])
  })
})

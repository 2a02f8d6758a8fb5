import { describe, expect, test } from 'vitest'
import {
  agentTurn,
  answer,
  at,
  call,
  event,
  fullThread,
  request,
  response,
  text,
  thread,
  userTurn,
} from '../../test/samples.ts'
import type { MessagePart } from './part.ts'
import { redactThread } from './redact.ts'
import { parseThread, stringifyThread } from './thread-text.ts'
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
    expect(valueOf(made)).toEqual({ 'my [redacted]': 1, version: '[redacted]' })
    expect(made.redacted).toEqual(['/metadata/value/my key', '/metadata/value/version'])
  })

  test("TP-52 the protocol's own keys stay, whatever part of their names is searched for", () => {
    const full = fullThread()
    const document = thread(
      [
        ...full.turns,
        userTurn([
          { part_kind: 'user-prompt', content: [{ kind: 'image-url', url: 'u', identifier: 'i' }] },
        ]),
      ],
      { relationships: { links: [{ thread_id: 'x', relation: 'fork' }] } },
    )
    const secrets = ['turn', 'ver', 'id', 'part', 'cont', 'agent', 'usage', 'token', 'rel', 'tool']
    const { thread: clean } = redactThread(document, { secrets, replacement: '#' })
    const keysOf = (value: unknown): unknown =>
      Array.isArray(value)
        ? value.map(keysOf)
        : typeof value === 'object' && value !== null
          ? Object.keys(value)
          : null
    expect(keysOf(clean)).toEqual(keysOf(document))
    expect(keysOf(clean.turns)).toEqual(keysOf(document.turns))
    const partsOf = (all: typeof document.turns) =>
      all.flatMap((turn) =>
        turn.turn_type === 'user'
          ? turn.parts
          : turn.messages.flatMap((message) => ('parts' in message ? message.parts : [])),
      )
    expect(keysOf(partsOf(clean.turns))).toEqual(keysOf(partsOf(document.turns)))
    expect(validateThread(clean).issues.filter(({ severity }) => severity === 'error')).toEqual([])
    // The same names inside data of the application are ordinary names.
    const inData = redactThread(holding({ turns: 1, content: [{ kind: 1 }] }), {
      secrets: ['turn', 'kind'],
    })
    expect(valueOf(inData)).toEqual({ '[redacted]s': 1, content: [{ '[redacted]': 1 }] })
    const result = thread([
      agentTurn('ada', [
        response('ada', 1, call('c', 'save', {})),
        request('ada', 2, answer('c', 'save', [{ identifier: 1 }])),
      ]),
    ])
    const ofTool = redactThread(result, { secrets: ['identifier'] })
    expect(ofTool.redacted).toEqual(['/turns/0/messages/1/parts/0/content/0/identifier'])
  })

  // Each name of a structural field, as text and with an object below it.
  const names = (
    'version turn_type message_type part_kind kind status outcome finish_reason timestamp ' +
    'created_at updated_at submitted_at started_at completed_at interrupted_at speaker'
  ).split(' ')
  const free = {
    // Text that looks like the place and value of a structural field.
    note: 'sk-123 /parts/0/content/kind=binary /usage/x=1 /content_ref/size_bytes=1',
    ...Object.fromEntries(names.map((name) => [name, 'key sk-123 accepted'])),
    inner: Object.fromEntries(names.map((name) => [name, { message: 'sk-123', at: ['sk-123'] }])),
  }

  test('TP-52 names of the protocol are ordinary names inside application data, and in unknown fields', () => {
    const { turns, ...head } = thread(
      [
        userTurn([
          { part_kind: 'user-prompt', content: [{ kind: 'unheard-of', free } as never] },
          { part_kind: 'unheard-of', free, status: 'key sk-123' } as never,
        ]),
        agentTurn('ada', [
          response('ada', 1, call('c1', 'save', free)),
          request('ada', 2, {
            ...answer('c1', 'save', free),
            metadata: free,
            extra: free,
          } as never),
          request('ada', 3, { ...answer('c2', 'save', [free]), outcome: free } as never),
          event('x', 4, free),
        ]),
      ],
      { metadata: free, extra: free } as never,
    )
    const document = { ...head, turns: turns.map((turn) => ({ ...turn, client_metadata: free })) }
    const { thread: clean, redacted } = redactThread(document, { secrets: ['sk-123'] })
    expect(JSON.stringify(clean)).not.toContain('sk-123')
    expect(JSON.stringify(clean).match(/\[redacted\]/g)).toHaveLength(redacted.length)
    const words = redactThread(document, { secrets: ['success'] })
    expect(words.thread).toBe(document)
    const inData = redactThread(holding({ status: 'success' }), { secrets: ['success'] })
    expect(valueOf(inData)).toEqual({ status: '[redacted]' })
  })

  test('TP-52 a number is searched by its text, as it was written and as JavaScript writes it', () => {
    const card = redactThread(holding({ card: 4111111111111111, list: [1, 4111111111111111] }), {
      secrets: ['4111111111111111'],
    })
    expect(valueOf(card)).toEqual({ card: '[redacted]', list: [1, '[redacted]'] })
    expect(card.redacted).toEqual(['/metadata/value/card', '/metadata/value/list/1'])
    const read = parseThread(
      JSON.stringify(holding('#')).replace('"#"', '[12345678901234567890,41.11e2,18.0]'),
    )
    const made = redactThread(read, { secrets: ['12345678901234567890', '4111'] })
    expect(stringifyThread(made.thread)).toContain('["[redacted]","[redacted]",18.0]')
  })

  test('TP-52 counts, times and words of the protocol stay, whatever is searched for', () => {
    const content_ref = { uri: 'x', size_bytes: 12, hash: 'h', media_type: 'image/png' }
    const audio = { kind: 'binary', data: '', media_type: 'audio/wav', identifier: 'i' } as const
    const usage = { input_tokens: 12, cost: '0.12', details: { reasoning: 12 } }
    const document = thread([
      userTurn([
        { part_kind: 'speech', speaker: 'user', audio: { ...audio, content_ref } },
        { part_kind: 'user-prompt', content: [{ kind: 'image-url', url: 'u', identifier: 'i' }] },
      ]),
      {
        ...agentTurn('ada', [
          { ...response('ada', 1, call('c', 'save', {})), usage, finish_reason: 'stop' },
          {
            ...request('ada', 2, {
              ...answer('c', 'save', ''),
              content_ref,
              outcome: 'success',
            } as MessagePart),
            system_prompts: [{ at: 0, prompt: {} }],
            pydantic_ai: { verbatim: [0] },
          } as never,
        ]),
        total_usage: usage,
        interruption: { reason: 'timeout', interrupted_at: at(3) },
      },
    ])
    const words = ['user', 'binary', 'image-url', 'speech', 'tool-call', 'success', 'stop']
    const patterns = [/(?<!-)\b\d+/]
    const made = redactThread(document, { secrets: words, patterns })
    expect(made.redacted).toEqual(['/thread_id'])
    expect({ ...made.thread, thread_id: document.thread_id }).toEqual(document)
  })
})

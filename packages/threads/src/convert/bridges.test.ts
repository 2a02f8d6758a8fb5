import { manualClock } from '@skein/base'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { arbitraryThread } from '../../test/arbitrary-thread.ts'
import {
  agentTurn,
  event,
  fullThread,
  response,
  text,
  thread as sampleThread,
} from '../../test/samples.ts'
import { withoutLost } from '../../test/without-lost.ts'
import type { Converted } from '../issue.ts'
import type { Thread } from '../document/thread.ts'
import { validateThread } from '../document/validate.ts'
import { fromAgUiEvents, toAgUiEvents } from './ag-ui/index.ts'
import { toOtelMessages } from './otel.ts'
import { fromUppMessages, toUppMessages } from './upp.ts'

const options = { agent: { agent_id: 'ada', agent_name: 'Ada' }, clock: manualClock() }
const numRuns = process.env['SKEIN_DEEP'] ? 1000 : 100

const bridges: Record<
  string,
  { to(thread: Thread): Converted<unknown>; from(value: never): Converted<Thread> }
> = {
  UPP: { to: toUppMessages, from: (value) => fromUppMessages(value, options) },
  'AG-UI': { to: toAgUiEvents, from: (value) => fromAgUiEvents(value, options) },
}

describe.each(Object.entries(bridges))('%s', (_, { to, from }) => {
  test('everything that was not reported as lost comes back', () => {
    fc.assert(
      fc.property(arbitraryThread, (thread) => {
        const { value, lost } = to(thread)
        const back = from(value as never)
        expect(back.lost).toEqual([])
        expect(back.value.turns).toMatchObject(
          withoutLost(thread.turns, lost, '/turns') as object[],
        )
      }),
      { seed: 11, numRuns },
    )
  })

  test('gives a valid thread, and leaves its source alone', () => {
    fc.assert(
      fc.property(arbitraryThread, (thread) => {
        const before = JSON.stringify(thread)
        const { value } = from(to(thread).value as never)
        expect(JSON.stringify(thread)).toBe(before)
        expect(validateThread(value).issues.filter((issue) => issue.severity === 'error')).toEqual(
          [],
        )
      }),
      { seed: 12, numRuns: Math.ceil(numRuns / 3) },
    )
  })

  test('reports events, attribution and unknown parts instead of dropping them', () => {
    const odd = sampleThread([
      agentTurn('ada', [
        response('ada', 1, text('hi'), { part_kind: 'hologram', size: 3 } as never),
        { ...event('app.note', 2, { a: 1 }), source_agent: 'ada' },
      ]),
    ])
    const pointers = to(odd).lost.map((loss) => loss.pointer)
    expect(pointers).toContain('/turns/0/messages/0/parts/1')
    expect(pointers.some((pointer) => pointer.startsWith('/turns/0/messages/1'))).toBe(true)
    expect(pointers).toContain('/turns/0/agent_id')
    expect(pointers).toContain('/agents')
  })

  test('converts the full sample', () => {
    const { value } = from(to(fullThread()).value as never)
    expect(validateThread(value).issues.filter((issue) => issue.severity === 'error')).toEqual([])
  })
})

describe('OpenTelemetry', () => {
  test('the last response is the output; every part has a type of the conventions', () => {
    const { value, lost } = toOtelMessages(fullThread())
    expect(value.output).toEqual([
      {
        role: 'assistant',
        name: 'bob',
        finish_reason: 'stop',
        parts: [{ type: 'text', content: 'Done.' }],
      },
    ])
    expect(value.input.map((message) => message.role)).toEqual([
      'user',
      'assistant',
      'tool',
      'assistant',
      'user',
    ])
    expect(value.input[0]?.parts).toEqual([
      { type: 'text', content: 'Compare these.' },
      { type: 'uri', modality: 'image', mime_type: 'image/png', uri: 'https://example.org/a.png' },
      { type: 'blob', modality: 'image', mime_type: 'image/png', content: 'aGk/' },
    ])
    expect(value.input[1]).toMatchObject({
      finish_reason: 'tool_call',
      parts: [
        { type: 'reasoning', content: 'Two pictures.' },
        { type: 'text' },
        { type: 'tool_call', id: 'c1', name: 'look_up', arguments: { q: 'c1' } },
        { type: 'tool_call', id: 'c2', arguments: '{"w": 1.0}' },
      ],
    })
    const pointers = lost.map((loss) => loss.pointer)
    expect(pointers).toContain('/turns/1/messages/1/parts/0/signature')
    expect(pointers).toContain('/turns/1/messages/1/usage')
  })

  test('no part is left out without a word', () => {
    const types = ['text', 'reasoning', 'tool_call', 'tool_call_response', 'blob', 'uri', 'file']
    fc.assert(
      fc.property(arbitraryThread, (thread) => {
        const { value, lost } = toOtelMessages(thread)
        const shown = [...value.input, ...value.output].flatMap((message) => message.parts)
        expect(shown.every((part) => types.includes(part.type))).toBe(true)
        const left = withoutLost(thread.turns, lost, '/turns') as {
          parts?: unknown[]
          messages?: { parts: unknown[] }[]
        }[]
        const parts = left.flatMap((turn) => [
          ...(turn.parts ?? []),
          ...(turn.messages ?? []).flatMap((message) => message.parts),
        ])
        const items = (parts as { content?: unknown; part_kind?: string }[]).map(
          ({ content, part_kind }) =>
            part_kind === 'user-prompt' && Array.isArray(content)
              ? content.length
              : part_kind === 'thinking' && content === ''
                ? 0
                : 1,
        )
        expect(shown).toHaveLength(items.reduce((sum, count) => sum + count, 0))
      }),
      { seed: 13, numRuns },
    )
  })
})

import fc from 'fast-check'
import { expect, test } from 'vitest'
import { LiveDraft, type ShownEvent } from '../../src/live/live-draft.ts'

const at = '2026-01-01T00:00:00.000Z'
const delta = (blockId: string, text: string) =>
  ({ type: 'text_delta', at, turnId: 't', blockId, text }) as unknown as ShownEvent
const progress = (toolCallId: string, value: string) =>
  ({ type: 'tool_execution_progress', at, toolCallId, value }) as unknown as ShownEvent
const note = (value: string) =>
  ({ type: 'custom_event', at, name: 'n', value, isTransient: true }) as unknown as ShownEvent
const reset = { type: 'step_reset', at } as unknown as ShownEvent

/** What a reader gets that has `count` pieces: texts of one block are one, however they were cut. */
function read(draft: LiveDraft, count: number, since = -1): readonly unknown[] {
  const got: [string, string][] = []
  let last = count
  for (let piece = draft.after(last, since); piece; piece = draft.after(last, since)) {
    const event = piece.event as unknown as Record<string, string>
    const name = `${event['type']} ${event['blockId'] ?? event['toolCallId'] ?? ''}`
    const before = got.at(-1)
    const isWords = event['type'] === 'text_delta'
    if (isWords && before?.[0] === name) before[1] += event['text']!
    else got.push([name, (isWords ? event['text'] : event['value']) ?? ''])
    last = piece.count
  }
  return [...got, last]
}

type Step =
  | { readonly add: ShownEvent }
  /** Sends the pieces after those that the copy has, and this many before them once more. */
  | { readonly send: number }
  /** Sends the draft as a whole, as to a node that connects again. */
  | 'send all'
  | 'step resets'

const words = fc.string({ minLength: 1, maxLength: 3 })
const block = fc.constantFrom('a', 'b')
const stepArbitrary: fc.Arbitrary<Step> = fc.oneof(
  { weight: 6, arbitrary: fc.tuple(block, words).map(([b, text]) => ({ add: delta(b, text) })) },
  { weight: 2, arbitrary: fc.tuple(block, words).map(([b, v]) => ({ add: progress(b, v) })) },
  { weight: 1, arbitrary: words.map((value) => ({ add: note(value) })) },
  { weight: 4, arbitrary: fc.nat(6).map((send) => ({ send })) },
  { weight: 1, arbitrary: fc.constantFrom('send all' as const, 'step resets' as const) },
)

test('the copy of a draft at another node is the draft, however its parts overlap', () => {
  fc.assert(
    fc.property(fc.array(stepArbitrary, { maxLength: 60 }), (steps) => {
      const own = new LiveDraft(1_000_000)
      const copy = new LiveDraft(1_000_000)
      const compare = (): void => {
        expect(copy.count).toBe(own.count)
        for (let count = 0; count <= own.count; count++)
          expect(read(copy, count), `after ${count}`).toEqual(read(own, count))
      }
      for (const step of steps)
        if (step === 'step resets') {
          own.restart()
          own.add(reset)
        } else if (step === 'send all') {
          expect(copy.join(own.part(0))).toBe(true)
          compare()
        } else if ('add' in step) own.add(step.add)
        else {
          expect(copy.join(own.part(Math.max(copy.count - step.send, 0)))).toBe(true)
          compare()
        }
    }),
    { numRuns: 300 },
  )
})

test('a part that does not follow what the copy has is refused, and changes nothing', () => {
  const own = new LiveDraft(1_000_000)
  const copy = new LiveDraft(1_000_000)
  for (const text of ['a', 'b', 'c']) own.add(delta('a', text))
  expect(copy.join(own.part(1))).toBe(false)
  expect([copy.count, read(copy, 0)]).toEqual([0, [0]])
})

test('a reader does not get a transient event twice when the draft is sent as a whole again', () => {
  const own = new LiveDraft(1_000_000)
  const copy = new LiveDraft(1_000_000)
  own.add(delta('a', 'x'))
  own.add(note('once'))
  copy.join(own.part(0))
  // A reader that connects now was not there when it happened.
  const since = copy.order
  copy.join(own.part(0))
  expect(read(copy, 0, since)).toEqual([['text_delta a', 'x'], 1])
})

test('what the owner has dropped is not missing at the copy without a sign', () => {
  const own = new LiveDraft(200)
  const copy = new LiveDraft(1_000_000)
  for (let index = 0; index < 60; index++) own.add(delta(`b${index}`, 'some words'))
  copy.join(own.part(0))
  expect(copy.count).toBe(own.count)
  // As at the owner, a reader from the beginning gets nothing more of this step.
  expect(read(copy, 0)).toEqual(read(own, 0))
  expect(read(copy, 0)).toEqual([0])
})

test('a draft that is sent as a whole replaces that of an earlier step, which was longer', () => {
  const copy = new LiveDraft(1_000_000)
  for (const text of ['a', 'b', 'c', 'd']) copy.add(delta('old', text))
  const own = new LiveDraft(1_000_000)
  for (const text of ['x', 'y']) own.add(delta('new', text))
  expect(copy.join(own.part(0))).toBe(true)
  expect([copy.count, read(copy, 0)]).toEqual([2, [['text_delta new', 'xy'], 2]])
})

test('pieces that a step has dropped when it started over are counted at the copy too', () => {
  const own = new LiveDraft(1_000_000)
  const copy = new LiveDraft(1_000_000)
  for (const text of ['a', 'b', 'c']) own.add(delta('a', text))
  own.restart()
  expect([copy.join(own.part(0)), copy.count]).toEqual([true, 3])
  own.add(delta('a', 'd'))
  expect(copy.join(own.part(3))).toBe(true)
  expect(read(copy, 3)).toEqual([['text_delta a', 'd'], 4])
})

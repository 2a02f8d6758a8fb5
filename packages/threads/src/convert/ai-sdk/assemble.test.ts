import fc from 'fast-check'
import { parsePartialJson } from '@skein/base'
import { describe, expect, test } from 'vitest'
import { assemble } from '../../../test/arbitrary-chunk.ts'
import { decodeUIStream, encodeUIChunk, UIChunkReader } from './ui-chunks.ts'
import type { UIMessage, UIMessageChunk } from './types.ts'
import { processorMs } from '../../../../../conformance/support/processor-time.ts'

describe('the assembler', () => {
  test('100,000 deltas take linear time', () => {
    const stream = (count: number): UIMessageChunk[] => [
      { type: 'text-start', id: 't' },
      { type: 'tool-input-start', toolCallId: 'c', toolName: 'f' },
      ...Array.from({ length: count }, (_, index): UIMessageChunk =>
        index % 2
          ? { type: 'text-delta', id: 't', delta: 'word ' }
          : { type: 'tool-input-delta', toolCallId: 'c', inputTextDelta: '[[' },
      ),
    ]
    const time = (count: number): number => {
      const chunks = stream(count)
      const start = processorMs()
      const { message } = assemble(chunks)
      expect((message.parts[0] as { text: string }).text).toHaveLength((count / 2) * 5)
      return processorMs() - start
    }
    time(10_000)
    // Ten times the work may take three times its fair share on a busy machine; a square would be a hundred.
    expect(time(100_000)).toBeLessThan(Math.max(30 * time(10_000), 400))
  })

  test('many steps and many calls stay linear too', () => {
    const chunks = Array.from({ length: 20_000 }, (_, index): UIMessageChunk[] => [
      { type: 'start-step' },
      { type: 'tool-input-available', toolCallId: `c${index}`, toolName: 'f', input: {} },
      { type: 'tool-output-available', toolCallId: `c${index}`, output: index },
    ]).flat()
    const start = processorMs()
    expect(assemble(chunks).message.parts).toHaveLength(40_000)
    expect(processorMs() - start).toBeLessThan(2000)
  })

  test('a stream that stops is not finished; its last words are still streaming', () => {
    const assembler = assemble([
      { type: 'text-start', id: 't' },
      { type: 'text-delta', id: 't', delta: 'Hal' },
    ])
    expect(assembler.isFinished).toBe(false)
    expect(assembler.message.parts).toEqual([{ type: 'text', text: 'Hal', state: 'streaming' }])
  })

  test('what leaves no trace is named', () => {
    const assembler = assemble([
      { type: 'start-step' },
      { type: 'text-start', id: 't' },
      { type: 'reset-step' },
      { type: 'data-note', data: 1, transient: true },
    ])
    expect(assembler.dropped).toEqual([
      { index: 2, type: 'text', reason: 'reset-step discarded it' },
      { index: 3, type: 'data-note', reason: 'transient data is shown, never history' },
    ])
  })

  test('does not touch the message that it continues', () => {
    const before: UIMessage = {
      id: 'm',
      role: 'assistant',
      parts: [{ type: 'tool-f', toolCallId: 'c', state: 'input-available', input: {} }],
    }
    const copy = structuredClone(before)
    expect(
      assemble([{ type: 'tool-output-available', toolCallId: 'c', output: 1 }], before).message
        .parts[0],
    ).toMatchObject({ output: 1 })
    expect(before).toEqual(copy)
  })
})

describe('the wire', () => {
  const chunks: UIMessageChunk[] = [
    { type: 'start', messageId: 'm' },
    { type: 'text-start', id: 't' },
    { type: 'text-delta', id: 't', delta: 'Grüße 🌍\n\ndata: x' },
    { type: 'text-end', id: 't' },
    { type: 'finish' },
  ]
  const text = chunks.map(encodeUIChunk).join('') + 'data: [DONE]\n\n'

  test('comes back however the network cuts it, with comments and CRLF too', () => {
    expect(decodeUIStream(text)).toEqual(chunks)
    const noisy = new TextEncoder().encode(`: keep-alive\n\n${text.replaceAll('\n', '\r\n')}`)
    for (let size = 1; size < 12; size++) {
      const reader = new UIChunkReader()
      const read: UIMessageChunk[] = []
      for (let at = 0; at < noisy.length; at += size)
        read.push(...reader.push(noisy.subarray(at, at + size)))
      expect(read).toEqual(chunks)
      expect(reader.isDone).toBe(true)
    }
  })

  test('what is no chunk is a typed error', () => {
    for (const data of ['{"type":', '[]', '"x"', 'null', '{"type":1}']) {
      expect(() => decodeUIStream(`data: ${data}\n\n`)).toThrow(
        expect.objectContaining({ code: 'UI_CHUNK_INVALID' }),
      )
    }
  })
})

describe('partial JSON', () => {
  test('any beginning of a text gives a beginning of its value', () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 3 }), fc.nat(), (value, cut) => {
        const text = JSON.stringify(value)
        const part = parsePartialJson(text.slice(0, cut % (text.length + 1)))
        expect(isBeginning(part, value)).toBe(true)
      }),
      { seed: 9, numRuns: 500 },
    )
  })

  test('closes what is open and drops what is undecided', () => {
    const cases: [string, unknown][] = [
      ['{"city":"Os', { city: 'Os' }],
      ['{"a":1,"b', { a: 1 }],
      ['{"a":1,"b":', { a: 1 }],
      ['{"a":tr', { a: true }],
      ['[1, 2.', [1, 2]],
      ['[{"a":[', [{ a: [] }]],
      ['"x\\u00', 'x'],
      ['', undefined],
    ]
    for (const [text, value] of cases) expect(parsePartialJson(text)).toEqual(value)
  })
})

/** True when `part` is `whole` cut short: strings are prefixes, lists shorter, objects lack later keys. */
function isBeginning(part: unknown, whole: unknown): boolean {
  if (part === undefined) return true
  if (typeof part === 'string' && typeof whole === 'string') return whole.startsWith(part)
  // The digits of a number that has only begun may say anything.
  if (typeof part === 'number') return typeof whole === 'number'
  if (Array.isArray(part) && Array.isArray(whole))
    return part.every((item, index) => isBeginning(item, whole[index]))
  if (typeof part === 'object' && typeof whole === 'object' && part && whole) {
    return Object.entries(part).every(
      ([key, value]) =>
        Object.hasOwn(whole, key) && isBeginning(value, (whole as Record<string, unknown>)[key]),
    )
  }
  return part === whole
}

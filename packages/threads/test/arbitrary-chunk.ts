import fc from 'fast-check'
import { UIMessageAssembler } from '../src/convert/ai-sdk/assemble.ts'
import type { UIMessage, UIMessageChunk } from '../src/convert/ai-sdk/types.ts'

const id = fc.constantFrom('a', 'b', '__proto__', 'constructor')
const word = fc.string({ unit: 'grapheme', maxLength: 8 })
const metadata = fc.option(
  fc.record({ providerMetadata: fc.record({ acme: fc.record({ k: word }) }) }),
  { nil: {} },
)
/** In any order these are the beginning of some JSON text. */
const inputText = fc.constantFrom('[', '[[', '[1, ', '[{"k":', '["x", ')

/** Any chunk, in any order: also streams that no server should send. */
export const arbitraryChunk: fc.Arbitrary<UIMessageChunk> = fc
  .oneof(
    fc.record({ type: fc.constantFrom('start-step', 'finish-step', 'reset-step') }),
    fc.record({
      type: fc.constantFrom('text-start', 'text-end', 'reasoning-start', 'reasoning-end'),
      id,
    }),
    fc.record({ type: fc.constantFrom('text-delta', 'reasoning-delta'), id, delta: word }),
    fc.record({
      type: fc.constant('tool-input-start'),
      toolCallId: id,
      toolName: fc.constant('f'),
      inputEncoding: fc.constantFrom('json', 'text'),
    }),
    fc.record({ type: fc.constant('tool-input-delta'), toolCallId: id, inputTextDelta: inputText }),
    fc.record({
      type: fc.constant('tool-input-available'),
      toolCallId: id,
      toolName: fc.constantFrom('f', 'g-h'),
      input: fc.record({ x: word }),
    }),
    fc.record({
      type: fc.constant('tool-input-error'),
      toolCallId: id,
      toolName: fc.constant('f'),
      input: word,
      errorText: word,
    }),
    fc.record({
      type: fc.constant('tool-approval-request'),
      toolCallId: id,
      approvalId: id,
      reason: word,
    }),
    fc.record({
      type: fc.constant('tool-approval-response'),
      approvalId: id,
      approved: fc.boolean(),
    }),
    fc.record({
      type: fc.constant('tool-output-available'),
      toolCallId: id,
      output: word,
      preliminary: fc.boolean(),
    }),
    fc.record({ type: fc.constant('tool-output-error'), toolCallId: id, errorText: word }),
    fc.record({ type: fc.constant('tool-output-denied'), toolCallId: id }),
    fc.record({ type: fc.constant('source-url'), sourceId: id, url: word }),
    fc.record({ type: fc.constant('source-document'), sourceId: id, mediaType: word, title: word }),
    fc.record({ type: fc.constantFrom('file', 'reasoning-file'), url: word, mediaType: word }),
    fc.record({ type: fc.constant('custom'), kind: fc.constant('a.b') }),
    fc.record({
      type: fc.constant('steering-message'),
      id,
      parts: fc.constant([{ type: 'text', text: 'now' }]),
    }),
    fc.record({
      type: fc.constantFrom('data-x', 'data-y.z'),
      id: fc.option(id, { nil: undefined }),
      data: word,
      transient: fc.boolean(),
    }),
    fc.record({
      type: fc.constant('message-metadata'),
      messageMetadata: fc.dictionary(
        fc.constantFrom('a', 'b', 'constructor'),
        fc.oneof(word, fc.dictionary(id, word)),
      ),
    }),
  )
  .chain((value) =>
    metadata.map(
      (more) =>
        JSON.parse(
          JSON.stringify('id' in value || 'toolCallId' in value ? { ...value, ...more } : value),
        ) as UIMessageChunk,
    ),
  )

export function assemble(
  chunks: readonly UIMessageChunk[],
  message?: UIMessage,
): UIMessageAssembler {
  const assembler = new UIMessageAssembler(message)
  for (const each of chunks) assembler.push(each)
  return assembler
}

/** The chunks that can follow one another; those that refer to nothing are left out. */
export function accepted(chunks: readonly UIMessageChunk[]): UIMessageChunk[] {
  const assembler = assemble([{ type: 'start-step' }])
  return chunks.filter((each) => {
    try {
      assembler.push(structuredClone(each))
      return true
    } catch {
      return false
    }
  })
}

import { UIMessageAssembler, type UIMessageChunk } from '@skein/threads/ai-sdk'
import type { Bench } from '../runner/bench.ts'

const deltas = 20_000

/** One answer in many deltas, as a model streams it, with a tool call now and then. */
function makeChunks(): UIMessageChunk[] {
  const chunks: UIMessageChunk[] = [{ type: 'start', messageId: 'm1' }, { type: 'start-step' }]
  const perPart = 500
  for (let part = 0; part < deltas / perPart; part++) {
    const id = `t${part}`
    chunks.push({ type: 'text-start', id })
    for (let index = 0; index < perPart; index++) {
      chunks.push({ type: 'text-delta', id, delta: `word${index} ` })
    }
    const toolCallId = `c${part}`
    chunks.push(
      { type: 'text-end', id },
      { type: 'tool-input-available', toolCallId, toolName: 'look_up', input: { part } },
      { type: 'tool-output-available', toolCallId, output: { found: part } },
    )
  }
  chunks.push({ type: 'finish-step' }, { type: 'finish' })
  return chunks
}

const bench: Bench = {
  title: `UI stream of ${deltas} deltas into a message (goal: 500,000 chunks/s and 20x the ai package)`,
  baseline: '@skein/threads/ai-sdk',
  amount: { value: makeChunks().length, unit: 'chunks' },
  repetitions: 5,
  warmups: 2,
  contenders: {
    '@skein/threads/ai-sdk': {
      prepare() {
        const chunks = makeChunks()
        return () => {
          const assembler = new UIMessageAssembler()
          for (const chunk of chunks) assembler.push(chunk)
          return textLength(assembler.message.parts)
        }
      },
    },
    'ai, readUIMessageStream': {
      async prepare() {
        const { readUIMessageStream } = await import('ai')
        const chunks = makeChunks()
        return async () => {
          const stream = new ReadableStream({
            start(controller) {
              for (const chunk of chunks) controller.enqueue(chunk)
              controller.close()
            },
          })
          let length = 0
          for await (const message of readUIMessageStream({ stream: stream as never })) {
            length = message.parts.length
            last = message.parts
          }
          return length === 0 ? 0 : textLength(last)
        }
      },
    },
  },
}

let last: readonly unknown[] = []

function textLength(parts: readonly unknown[]): number {
  return (parts as readonly { text?: string }[]).reduce(
    (sum, part) => sum + (part.text?.length ?? 0),
    0,
  )
}

export default bench

import { describe, expect, test } from 'vitest'
import { embedding } from '../embedding.ts'
import { image } from '../image.ts'
import { llm } from '../llm.ts'
import { Image } from '../media/image.ts'
import type { Middleware } from './middleware.ts'
import { createProvider } from './provider.ts'
import { calls, says, scripted } from '../testing/index.ts'

const never = (): Promise<never> => new Promise(() => {})
const cancelled = { name: 'UPPError', code: 'CANCELLED' }

/** A provider that neither listens to the signal nor ever answers the second request. */
function deaf() {
  let asked = 0
  const once = async <T>(value: T): Promise<T> => (asked++ === 0 ? value : never())
  return createProvider({
    name: 'deaf',
    embedding: {
      maxBatchSize: 1,
      imageInput: false,
      bind: ({ modelId }) => ({
        modelId,
        provider: 'deaf',
        embed: () =>
          once({
            embeddings: [{ vector: [1], dimensions: 1, index: 0 }],
            usage: { totalTokens: 1 },
          }),
      }),
    },
    image: {
      bind: ({ modelId }) => ({
        modelId,
        provider: 'deaf',
        capabilities: { generate: true, edit: true, streaming: true },
        generate: never,
        edit: never,
        async *stream() {
          yield {
            type: 'preview' as const,
            index: 0,
            image: Image.fromBytes(new Uint8Array([1]), 'image/png'),
          }
          await never()
        },
      }),
    },
  })
}

describe('an abort settles at once, whoever does not listen', () => {
  test('UPP-132 embeddings, chunk by chunk and all at once', async () => {
    const stream = embedding({ model: deaf()('m') }).embed(['a', 'b'], { chunked: true })
    const read = async (): Promise<void> => {
      for await (const { percent } of stream) {
        expect(percent).toBe(50)
        stream.abort()
      }
    }
    await expect(read()).rejects.toMatchObject({ ...cancelled, modality: 'embedding' })
    await expect(stream.result).rejects.toMatchObject(cancelled)

    const controller = new AbortController()
    const all = embedding({ model: deaf()('m') }).embed(['a', 'b'], { signal: controller.signal })
    controller.abort(new Error('enough'))
    await expect(all).rejects.toMatchObject({ ...cancelled, cause: { message: 'enough' } })
  })

  test('UPP-132 leaving embeddings with their last chunk gives up nothing', async () => {
    const stream = embedding({ model: deaf()('m') }).embed(['a'], { chunked: true })
    for await (const { percent } of stream) if (percent === 100) break
    await expect(stream.result).resolves.toMatchObject({ embeddings: [{ vector: [1] }] })
  })

  test('images, made, edited and streamed', async () => {
    const painter = image({ model: deaf()('m') })
    const png = Image.fromBytes(new Uint8Array([0x89, 0x50, 0x4e, 0x47]), 'image/png')
    for (const call of [
      (signal: AbortSignal) => painter.generate('x', { signal }),
      (signal: AbortSignal) => painter.edit({ prompt: 'x', image: png }, { signal }),
      (signal: AbortSignal) => painter.stream('x', { signal }).result,
    ]) {
      const controller = new AbortController()
      const running = call(controller.signal)
      setTimeout(() => controller.abort(), 1)
      await expect(running).rejects.toMatchObject({ ...cancelled, modality: 'image' })
    }
  })

  test.each([
    'onStart',
    'onRequest',
    'onCycle',
    'onStreamEvent',
    'onToolCall',
    'onToolResult',
    'onStreamEnd',
    'onResponse',
    'onTurn',
    'onEnd',
  ] as const)('a hook that hangs: %s', async (hook) => {
    let reach = (): void => {}
    const reached = new Promise<void>((resolve) => (reach = resolve))
    const aborts: string[] = []
    const hanging: Middleware = {
      name: 'hanging',
      [hook]: () => {
        reach()
        return never()
      },
      onAbort: (error) => void aborts.push((error as { code?: string }).code ?? ''),
    }
    const tool = { name: 'now', description: '', parameters: {}, run: () => 1 }
    const model = scripted([calls('now', {}), says('Done.')])
    const stream = llm({ model, tools: [tool], middleware: [hanging] }).stream('Go.')
    const turn = stream.turn
    await reached
    stream.abort()
    await expect(turn).rejects.toMatchObject(cancelled)
    expect(aborts).toEqual(['CANCELLED'])
  })
})

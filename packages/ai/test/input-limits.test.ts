import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { isUPPError, UPPError } from '../src/contract/error.ts'
import type { ProviderConfig } from '../src/contract/provider.ts'
import { llm } from '../src/llm.ts'
import { calls, reasons, says, scripted, type ScriptPart } from '../src/testing/scripted.ts'
import { tool } from '../src/tools/define.ts'
import { NoRetry } from '../src/transport/retry.ts'
import { openaiCompatible } from '../src/vendors/openai-compatible.ts'

const streaming = fc.boolean()

/** Runs a call and returns its text, or the error it failed with. */
async function run(
  parts: readonly ScriptPart[],
  config: ProviderConfig,
  isStreaming: boolean,
): Promise<string | UPPError> {
  const model = scripted([parts])
  const instance = llm({ model, config, tools: [nothing], toolStrategy: { maxIterations: 0 } })
  return textOf(instance, isStreaming)
}

const nothing = tool({
  name: 'nothing',
  description: 'Does nothing.',
  parameters: { type: 'object' },
  run: () => null,
})

async function textOf(
  instance: ReturnType<typeof llm>,
  isStreaming: boolean,
): Promise<string | UPPError> {
  try {
    if (!isStreaming) return (await instance.generate('Hi')).response.text
    const stream = instance.stream('Hi')
    for await (const _ of stream);
    return (await stream.turn).response.text
  } catch (error) {
    if (isUPPError(error)) return error as UPPError
    throw error
  }
}

describe('maxMessageBytes', () => {
  test('property: a message up to the limit is taken, one byte more is refused with what had arrived', async () => {
    const letters = fc.array(fc.constantFrom('a', 'é', '你', '👋'), { maxLength: 40 })
    await fc.assert(
      fc.asyncProperty(
        letters,
        fc.integer({ min: -8, max: 8 }),
        streaming,
        async (all, by, isStreaming) => {
          fc.pre(all.length > 0)
          const text = all.join('')
          const bytes = Buffer.byteLength(text)
          const maxMessageBytes = Math.max(bytes + by, 1)
          const got = await run(
            all.map((letter) => says(letter)),
            { maxMessageBytes },
            isStreaming,
          )
          if (bytes <= maxMessageBytes) return void expect(got).toBe(text)
          expect(got).toMatchObject({
            code: 'INVALID_RESPONSE',
            shouldRetry: false,
            message: `A message of scripted is over ${maxMessageBytes} bytes.`,
          })
          const arrived = (got as UPPError).turn!.response.text
          expect(text.startsWith(arrived)).toBe(true)
          expect(Buffer.byteLength(arrived)).toBeLessThanOrEqual(maxMessageBytes)
        },
      ),
    )
  })

  test('reasoning and arguments count', async () => {
    const config = { maxMessageBytes: 30 }
    for (const parts of [
      [reasons('x'.repeat(31))],
      [calls('nothing', { a: 'x'.repeat(31) })],
      [reasons('x'.repeat(20)), says('x'.repeat(20))],
    ])
      expect(await run(parts, config, true)).toMatchObject({ code: 'INVALID_RESPONSE' })
  })

  test('the default is 4 MiB', async () => {
    const mebibyte = says('x'.repeat(1024 * 1024))
    expect(await run(Array(4).fill(mebibyte), {}, true)).toHaveLength(4 * 1024 * 1024)
    expect(await run([...Array(4).fill(mebibyte), says('x')], {}, true)).toMatchObject({
      message: 'A message of scripted is over 4194304 bytes.',
    })
  })

  test('a limit that is no number is refused', async () => {
    const config = { maxMessageBytes: 'big' } as unknown as ProviderConfig
    const { instance } = vendor(['x'], config)
    expect(await textOf(instance, true)).toMatchObject({ code: 'INVALID_REQUEST' })
  })
})

test('property: maxToolCalls counts the calls of one message', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 1, max: 12 }),
      fc.integer({ min: 1, max: 12 }),
      streaming,
      async (count, maxToolCalls, isStreaming) => {
        const parts = Array.from({ length: count }, () => calls('nothing'))
        const got = await run([says('Hm'), ...parts.flat()], { maxToolCalls }, isStreaming)
        if (count <= maxToolCalls) return void expect(got).toBe('Hm')
        expect(got).toMatchObject({
          code: 'INVALID_RESPONSE',
          message: `A message of scripted is over ${maxToolCalls} calls.`,
        })
        expect((got as UPPError).turn!.response.toolCalls).toHaveLength(maxToolCalls)
      },
    ),
  )
})

/** A vendor whose stream is the given pieces of text, each an event; the body comes in reads of `size`. */
function vendor(pieces: readonly string[], config: ProviderConfig, size = 64) {
  const events = pieces.map(
    (content) => `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content } }] })}\n\n`,
  )
  const end = `data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n`
  const body = Buffer.from(events.join('') + end)
  let reads = 0
  const fetch = async (): Promise<Response> => {
    const stream = new ReadableStream<Uint8Array>(
      {
        pull(controller) {
          const chunk = body.subarray(reads * size, ++reads * size)
          if (chunk.length > 0) controller.enqueue(Uint8Array.from(chunk))
          else controller.close()
        },
      },
      { highWaterMark: 0 },
    )
    return new Response(stream, { headers: { 'content-type': 'text/event-stream' } })
  }
  const provider = openaiCompatible({ name: 'acme', baseUrl: 'http://localhost/v1' })
  const retryStrategy = new NoRetry()
  const instance = llm({ model: provider('m'), config: { fetch, retryStrategy, ...config } })
  return { instance, bytes: body.length, events: pieces.length + 2, reads: () => reads }
}

describe('a streamed answer', () => {
  const pieces = fc.array(fc.string({ minLength: 1, maxLength: 20 }), {
    minLength: 1,
    maxLength: 30,
  })

  test('property: maxResponseBytes counts the whole stream, not one event', async () => {
    await fc.assert(
      fc.asyncProperty(pieces, fc.integer({ min: -200, max: 50 }), async (texts, by) => {
        const { bytes } = vendor(texts, {})
        const maxResponseBytes = Math.max(bytes + by, 1)
        const { instance } = vendor(texts, { maxResponseBytes })
        const got = await textOf(instance, true)
        if (bytes <= maxResponseBytes) return void expect(got).toBe(texts.join(''))
        // The answer is complete before the body ends; what follows its end is dropped.
        if (typeof got === 'string') return void expect(got).toBe(texts.join(''))
        expect(got).toMatchObject({
          code: 'INVALID_RESPONSE',
          shouldRetry: false,
          message: `The response of acme is over ${maxResponseBytes} bytes.`,
        })
        expect(texts.join('').startsWith(got.turn!.response.text)).toBe(true)
      }),
    )
  })

  test('a stream that never ends is left at the limit', async () => {
    const texts = Array.from({ length: 5_000 }, () => 'x'.repeat(50))
    const { instance, reads } = vendor(texts, { maxResponseBytes: 10_000 }, 1_000)
    const got = await textOf(instance, true)
    expect(got).toMatchObject({ code: 'INVALID_RESPONSE' })
    expect((got as UPPError).turn!.response.text.length).toBeGreaterThan(1_000)
    expect(reads()).toBeLessThan(15)
  })

  test('property: maxEvents counts the events', async () => {
    await fc.assert(
      fc.asyncProperty(pieces, fc.integer({ min: 1, max: 35 }), async (texts, maxEvents) => {
        const { instance } = vendor(texts, { maxEvents })
        const got = await textOf(instance, true)
        // `[DONE]` comes after the event that ends the answer, so it need not be counted.
        if (maxEvents >= texts.length + 1 && typeof got === 'string')
          return void expect(got).toBe(texts.join(''))
        expect(maxEvents).toBeLessThan(texts.length + 2)
        expect(got).toMatchObject({
          code: 'INVALID_RESPONSE',
          message: `The response of acme is over ${maxEvents} events.`,
        })
      }),
    )
  })
})

test('property: of an error body no more than maxErrorBytes is read', async () => {
  await fc.assert(
    fc.asyncProperty(fc.nat(200), fc.integer({ min: 1, max: 200 }), async (size, maxErrorBytes) => {
      const fetch = async (): Promise<Response> => new Response('x'.repeat(size), { status: 400 })
      const provider = openaiCompatible({ name: 'acme', baseUrl: 'http://localhost/v1' })
      const instance = llm({ model: provider('m'), config: { fetch, maxErrorBytes } })
      const got = (await textOf(instance, false)) as UPPError
      expect(got.statusCode).toBe(400)
      expect((got.body ?? '').length).toBe(Math.min(size, maxErrorBytes))
    }),
  )
})

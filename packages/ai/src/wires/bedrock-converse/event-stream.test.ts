import { crc32 as nodeCrc32 } from 'node:zlib'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { llm } from '../../llm.ts'
import { isUPPError } from '../../contract/error.ts'
import { NoRetry } from '../../transport/retry.ts'
import { bedrock } from '../../vendors/bedrock.ts'
import { messageCrc } from './message-crc.ts'
import { encodeEventMessage, EventStreamDecoder, type EventMessage } from './event-stream.ts'
import { frameText, toBytes } from './frames.ts'

const runs = { numRuns: process.env['SKEIN_DEEP'] ? 2000 : 100, seed: 11 }
const LIMIT = 1_000_000

const message: fc.Arbitrary<EventMessage> = fc.record({
  headers: fc.dictionary(
    fc.string({ minLength: 1, maxLength: 20 }).filter((name) => name !== '__proto__'),
    fc.string({ maxLength: 30, unit: 'grapheme' }),
    { maxKeys: 4 },
  ),
  payload: fc.uint8Array({ maxLength: 100 }),
})

const joined = (parts: readonly Uint8Array[]): Uint8Array => new Uint8Array(Buffer.concat(parts))
const plain = (messages: readonly EventMessage[]): unknown =>
  messages.map(({ headers, payload }) => [{ ...headers }, [...payload]])

function decoded(chunks: readonly Uint8Array[], limit = LIMIT): EventMessage[] {
  const decoder = new EventStreamDecoder(limit)
  const messages = chunks.flatMap((chunk) => decoder.push(chunk))
  decoder.end()
  return messages
}

test('the CRC is that of Node', () => {
  expect(messageCrc(new TextEncoder().encode('123456789'))).toBe(0xcbf43926)
  fc.assert(
    fc.property(fc.uint8Array(), (bytes) => {
      expect(messageCrc(bytes)).toBe(nodeCrc32(bytes))
    }),
    runs,
  )
})

test('messages come out as they went in, however the bytes are cut', () => {
  fc.assert(
    fc.property(fc.array(message, { maxLength: 4 }), fc.array(fc.nat(600)), (messages, cuts) => {
      const bytes = joined(messages.map(encodeEventMessage))
      const places = [...new Set([0, ...cuts.map((cut) => cut % (bytes.length + 1)), bytes.length])]
      places.sort((a, b) => a - b)
      const chunks = places.slice(1).map((end, index) => bytes.subarray(places[index], end))
      expect(plain(decoded(chunks))).toEqual(plain(messages))
    }),
    runs,
  )
})

test('headers of other types are skipped', () => {
  const text = encodeEventMessage({ headers: { ':event-type': 'x' }, payload: new Uint8Array() })
  const values = [[0], [1], [2, 1], [3, 0, 1], [4, 0, 0, 0, 1], [5, ...new Uint8Array(8)], [6, 0, 2, 1, 2], [8, ...new Uint8Array(8)], [9, ...new Uint8Array(16)]] // prettier-ignore
  const others = values.flatMap((value, index) => [1, 97 + index, ...value])
  const known = text.subarray(12, text.length - 4)
  const headers = Uint8Array.from([...others, ...known])
  const bytes = Buffer.alloc(16 + headers.length)
  bytes.writeUInt32BE(bytes.length, 0)
  bytes.writeUInt32BE(headers.length, 4)
  bytes.writeUInt32BE(nodeCrc32(bytes.subarray(0, 8)), 8)
  bytes.set(headers, 12)
  bytes.writeUInt32BE(nodeCrc32(bytes.subarray(0, -4)), bytes.length - 4)
  expect(decoded([new Uint8Array(bytes)])[0]?.headers).toMatchObject({ ':event-type': 'x', a: undefined }) // prettier-ignore
})

describe('an answer over HTTP', () => {
  const text =
    frameText('messageStart', '{"role":"assistant"}') +
    frameText('contentBlockDelta', '{"contentBlockIndex":0,"delta":{"text":"Héllo"}}') +
    frameText('contentBlockStop', '{"contentBlockIndex":0}') +
    frameText('messageStop', '{"stopReason":"end_turn"}') +
    frameText('metadata', '{"usage":{"inputTokens":1,"outputTokens":1,"totalTokens":2}}')
  const bytes = toBytes(text)

  async function answer(...chunks: readonly Uint8Array[]): Promise<string> {
    const body = new ReadableStream({
      start(controller) {
        for (const chunk of chunks) if (chunk.length > 0) controller.enqueue(chunk)
        controller.close()
      },
    })
    const headers = { 'content-type': 'application/vnd.amazon.eventstream' }
    const fetch = async (): Promise<Response> => new Response(body, { headers })
    const config = { apiKey: 'k', fetch, retryStrategy: new NoRetry(), maxResponseBytes: 100_000 }
    const model = bedrock('m', { region: 'us-east-1' })
    return (await llm({ model, config }).stream('x').turn).text
  }

  test('is read after every cut', async () => {
    for (let cut = 0; cut <= bytes.length; cut++)
      expect(await answer(bytes.subarray(0, cut), bytes.subarray(cut)), `cut at ${cut}`).toBe('Héllo') // prettier-ignore
  })

  test('is INVALID_RESPONSE with any bit of any byte changed, never a wrong text', async () => {
    for (let at = 0; at < bytes.length; at++) {
      const damaged = bytes.slice()
      damaged[at]! ^= 1 << (at % 8)
      const error: unknown = await answer(damaged).catch((thrown: unknown) => thrown)
      expect(isUPPError(error) && error.code, `byte ${at}: ${String(error)}`).toBe(
        'INVALID_RESPONSE',
      )
    }
  })

  test('is INVALID_RESPONSE wherever it ends too early', async () => {
    // What follows messageStop are only numbers; all before it is the answer.
    const end = toBytes(text.slice(0, text.indexOf('metadata'))).length
    for (let length = 0; length < end; length++) {
      const error: unknown = await answer(bytes.subarray(0, length)).catch((thrown: unknown) => thrown) // prettier-ignore
      expect(isUPPError(error) && error.code, `after ${length}`).toBe('INVALID_RESPONSE')
    }
  })

  test('is refused if a message says that it is longer than the limit', async () => {
    const prelude = Buffer.alloc(12)
    prelude.writeUInt32BE(200_000, 0)
    prelude.writeUInt32BE(nodeCrc32(prelude.subarray(0, 8)), 8)
    await expect(answer(prelude)).rejects.toMatchObject({ code: 'INVALID_RESPONSE' })
  })

  test.each([
    ['throttlingException', 'RATE_LIMITED'],
    ['validationException', 'INVALID_REQUEST'],
    ['modelStreamErrorException', 'PROVIDER_ERROR'],
    ['serviceUnavailableException', 'PROVIDER_ERROR'],
  ])('with the exception %s is %s', async (name, code) => {
    const exception = toBytes(frameText(`exception:${name}`, '{"message":"Oh"}'))
    await expect(answer(bytes.subarray(0, 0), exception)).rejects.toMatchObject({ code, message: 'Oh', vendorType: name }) // prettier-ignore
  })

  test('with an error that has no payload is an error with its words', async () => {
    const headers = { ':message-type': 'error', ':error-code': 'InternalFailure', ':error-message': 'Oh' } // prettier-ignore
    const error = encodeEventMessage({ headers, payload: new Uint8Array() })
    await expect(answer(error)).rejects.toMatchObject({ code: 'PROVIDER_ERROR', message: 'Oh' })
  })
})

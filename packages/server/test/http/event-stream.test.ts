import { manualClock } from '@skein/base'
import { expect, test } from 'vitest'
import { eventStream } from '../../src/streams/event-stream.ts'
import { OpenStreams } from '../../src/streams/open-streams.ts'
import { manualTimers } from '@skein/runtime/testing'

function setUp(events: (signal: AbortSignal) => AsyncIterable<string>, bufferBytes = 100) {
  const clock = manualClock()
  const timers = manualTimers(clock)
  const streams = new OpenStreams({ maxStreams: 2, maxStreamsPerClient: 1 })
  const request = new AbortController()
  const log: string[] = []
  const socket = { unsentBytes: 0 }
  const open = (client = 'ada'): Response =>
    eventStream({
      events,
      client,
      streams,
      timers,
      clock,
      limits: { heartbeatMs: 15_000, streamBufferBytes: bufferBytes },
      signal: request.signal,
      expiresAt: 1_000_000,
      connection: {
        disconnect: () => void log.push('disconnect'),
        unsentBytes: () => socket.unsentBytes,
      },
      onError: (error) => log.push(String(error)),
    })
  return { timers, clock, streams, request, log, socket, open }
}

/** Waits for ever, until the signal. */
// oxlint-disable-next-line require-yield -- a stream without events
async function* quiet(signal: AbortSignal): AsyncGenerator<string, void, undefined> {
  await new Promise((resolve) => signal.addEventListener('abort', resolve))
}

const decoder = new TextDecoder()
const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

test('a quiet stream gets a comment with each heartbeat', async () => {
  const { timers, open } = setUp(quiet)
  const reader = open().body!.getReader()
  expect(decoder.decode((await reader.read()).value)).toBe('retry: 1000\n\n')
  await timers.advance(15_000)
  expect(decoder.decode((await reader.read()).value)).toBe(': still here\n\n')
  await reader.cancel()
})

test('only as much is taken as the client reads, and one that does not read is cut off', async () => {
  let given = 0
  let isOver = false
  async function* many(): AsyncGenerator<string, void, undefined> {
    try {
      for (;;) yield `data: ${++given}\n\n`
    } finally {
      isOver = true
    }
  }
  const { timers, streams, log, open } = setUp(many)
  const response = open()
  await settle()
  const held = given
  expect(held).toBeLessThan(20)
  await timers.advance(15_000)
  await settle()
  expect(given).toBe(held)
  expect([log, streams.size]).toEqual([[], 1])
  await timers.advance(15_000)
  await settle()
  expect([log, streams.size, isOver]).toEqual([['disconnect'], 0, true])
  await response.body!.cancel()
})

test('one that reads slowly but reads is kept', async () => {
  let given = 0
  async function* many(): AsyncGenerator<string, void, undefined> {
    for (;;) yield `data: ${++given} ${'x'.repeat(60)}\n\n`
  }
  const { timers, streams, log, open } = setUp(many)
  const reader = open().body!.getReader()
  for (let i = 0; i < 20; i++) {
    await settle()
    await timers.advance(15_000)
    await reader.read()
    await reader.read()
  }
  expect([log, streams.size]).toEqual([[], 1])
  await reader.cancel()
  expect(streams.size).toBe(0)
})

test('one whose socket holds too much at two heartbeats in a row is cut off, though its buffer here is empty', async () => {
  const { timers, streams, log, socket, open } = setUp(quiet)
  const reader = open().body!.getReader()
  const taking = (async () => {
    while (!(await reader.read()).done);
  })()
  socket.unsentBytes = 101
  await timers.advance(15_000)
  socket.unsentBytes = 100
  await timers.advance(15_000)
  socket.unsentBytes = 101
  await timers.advance(15_000)
  expect([log, streams.size]).toEqual([[], 1])
  await timers.advance(15_000)
  expect([log, streams.size]).toEqual([['disconnect'], 0])
  await reader.cancel()
  await taking
})

test('a large event is written in pieces, and no comment comes between them', async () => {
  const data = '🧶'.repeat(20_000)
  async function* one(signal: AbortSignal): AsyncGenerator<string, void, undefined> {
    yield `data:a${data}\n\n`
    yield* quiet(signal)
  }
  const { timers, streams, open } = setUp(one)
  const reader = open().body!.getReader()
  let text = ''
  let pieces = 0
  while (!text.includes('still here')) {
    const { value } = await reader.read()
    expect(value!.length).toBeLessThanOrEqual(64 * 1024)
    text += decoder.decode(value)
    pieces++
    if (pieces % 2 === 0) await timers.advance(15_000)
  }
  expect(pieces).toBeGreaterThan(3)
  expect(text).toBe(`retry: 1000\n\ndata:a${data}\n\n: still here\n\n`)
  streams.endAll()
})

test('a stream that ends in the middle of an event adds nothing to the event', async () => {
  async function* one(): AsyncGenerator<string, void, undefined> {
    yield `data:${'x'.repeat(100_000)}\n\n`
  }
  const { streams, open } = setUp(one)
  const reader = open().body!.getReader()
  await reader.read()
  await reader.read()
  streams.endAll()
  let rest = ''
  for (let step = await reader.read(); !step.done; step = await reader.read())
    rest += decoder.decode(step.value)
  expect(rest.replaceAll('x', '')).toBe('')
})

test('when the server goes down, streams end with a word when to come back', async () => {
  const { streams, open } = setUp(quiet)
  const text = open().text()
  await settle()
  streams.endAll()
  expect(await text).toBe('retry: 1000\n\n: going down\nretry: 1000\n\n')
  expect(streams.size).toBe(0)
})

test('a stream ends when the key of its client does', async () => {
  const { timers, streams, open } = setUp(quiet)
  const text = open().text()
  await timers.advance(1_010_000)
  expect(await text).toContain(': your key has expired')
  expect(streams.size).toBe(0)
})

test('a client that leaves frees its place, and each has only so many', async () => {
  const { streams, request, open } = setUp(quiet)
  const first = open()
  expect(() => open()).toThrow(/Too many streams/)
  open('bob')
  expect(() => open('eve')).toThrow(/Too many streams/)
  await first.body!.cancel()
  expect(streams.size).toBe(1)
  request.abort()
  expect(streams.size).toBe(0)
})

test('a stream that fails is reported and ends, without the error', async () => {
  async function* failing(): AsyncGenerator<string, void, undefined> {
    yield 'data: 1\n\n'
    throw new Error('canary')
  }
  const { log, open, streams } = setUp(failing)
  const text = await open().text()
  expect(text).toBe('retry: 1000\n\ndata: 1\n\n: interrupted\nretry: 1000\n\n')
  expect([log, streams.size]).toEqual([['Error: canary'], 0])
})

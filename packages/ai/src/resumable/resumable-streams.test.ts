import { manualClock, SkeinError } from '@skein/base'
import { describe, expect, test } from 'vitest'
import { UPPError } from '../contract/error.ts'
import type { StreamEvent } from '../contract/event.ts'
import { llm } from '../llm.ts'
import { calls, emits, fails, says, scripted, waits } from '../testing/index.ts'
import { memoryEvents } from './event-log.ts'
import {
  ResumableStreams,
  type StreamedEvent,
  type ResumableStreamOptions,
} from './resumable-streams.ts'
import { readSse } from './sse.ts'

const story = 'Once upon a time there was a skein.'
const stream = (...script: Parameters<typeof scripted>) =>
  llm({ model: scripted(...script) }).stream('Tell me a story.')

async function collect(
  source: AsyncIterable<StreamedEvent>,
  until: (event: StreamedEvent) => boolean = () => false,
): Promise<StreamedEvent[]> {
  const seen: StreamedEvent[] = []
  for await (const one of source) {
    seen.push(one)
    if (until(one)) break
  }
  return seen
}

const textOf = (events: readonly StreamedEvent[]): string =>
  events.map(({ event }) => (event.type === 'text_delta' ? event.delta.text : '')).join('')

/** A source that gives an event when the test says so. */
function manualSource() {
  const events: StreamEvent[] = []
  let wake = (): void => {}
  let isOver = false
  async function* run(): AsyncGenerator<StreamEvent> {
    for (;;) {
      const event = events.shift()
      if (event) yield event
      else if (isOver) return
      else await new Promise<void>((resolve) => (wake = resolve))
    }
  }
  const say = (text: string): void => {
    events.push({ type: 'text_delta', index: 0, delta: { text } })
    wake()
  }
  const end = (): void => {
    isOver = true
    wake()
  }
  return { source: run(), say, end }
}

test('readers that come late, during or after, get everything in order, then the end', async () => {
  const streams = new ResumableStreams()
  const { source, say, end } = manualSource()
  const { done } = await streams.start('s', source)
  const early = collect(streams.read('s'))
  say('a')
  say('b')
  await new Promise((resolve) => setTimeout(resolve, 2))
  const middle = collect(streams.read('s'))
  say('c')
  end()
  await done
  const late = await collect(streams.read('s'))
  expect(late.map(({ number }) => number)).toEqual([1, 2, 3])
  expect(textOf(late)).toBe('abc')
  expect(await early).toEqual(late)
  expect(await middle).toEqual(late)
  expect(streams.isRunning('s')).toBe(false)
})

test('a reader goes on after the last number it saw, whatever that was', async () => {
  const streams = new ResumableStreams()
  await streams.start('s', stream([says(story)]))
  const all = await collect(streams.read('s'))
  for (const { number } of all) {
    const rest = await collect(streams.read('s', { after: number }))
    expect(rest).toEqual(all.slice(number))
  }
})

test('the model goes on without a reader', async () => {
  const streams = new ResumableStreams()
  const { done } = await streams.start('s', stream([says(story)]))
  await collect(streams.read('s'), ({ event }) => event.type === 'text_delta')
  await done
  expect(textOf(await collect(streams.read('s')))).toBe(story)
})

test('a failure reaches every reader as what it was, after what came before it', async () => {
  const streams = new ResumableStreams()
  const failure = fails({
    code: 'RATE_LIMITED',
    message: 'Slow.',
    statusCode: 429,
    retryAfterMs: 9,
  })
  await streams.start('s', stream([[says('Half'), failure]]))
  for (let reader = 0; reader < 2; reader++) {
    const seen: StreamedEvent[] = []
    const error: unknown = await (async () => {
      for await (const one of streams.read('s')) seen.push(one)
    })().catch((thrown: unknown) => thrown)
    expect(textOf(seen)).toBe('Half')
    expect(error).toBeInstanceOf(UPPError)
    expect(error).toMatchObject({
      code: 'RATE_LIMITED',
      message: 'Slow.',
      provider: 'scripted',
      statusCode: 429,
      retryAfterMs: 9,
    })
  }
})

test('bytes survive, and a result that is no JSON does not break the stream', async () => {
  const streams = new ResumableStreams()
  const data = new Uint8Array([0, 255, 7])
  const picture = emits(
    { type: 'content_block_start', index: 0, delta: { block: 'image' } },
    { type: 'image_delta', index: 0, delta: { data, mimeType: 'image/png' } },
    { type: 'content_block_stop', index: 0, delta: {} },
  )
  await streams.start('s', stream([picture]))
  const events = (await collect(streams.read('s'))).map(({ event }) => event)
  expect(events.find(({ type }) => type === 'image_delta')?.delta).toEqual({
    data,
    mimeType: 'image/png',
  })
  const big = { name: 'big', description: '', parameters: {}, run: () => 10n }
  const model = scripted([calls('big', {}), says('Done.')])
  await streams.start('t', llm({ model, tools: [big] }).stream('Hi'))
  expect(textOf(await collect(streams.read('t')))).toBe('Done.')
})

describe('what is not there', () => {
  const codeOf = (reading: Promise<unknown>): Promise<unknown> =>
    reading.then(
      () => 'no error',
      (error: unknown) => (SkeinError.is(error) ? error.code : error),
    )

  test('an unknown stream is refused at once and leaves nothing behind', async () => {
    const log = memoryEvents()
    const streams = new ResumableStreams({ log })
    expect(await codeOf(collect(streams.read('nobody')))).toBe('STREAM_NOT_FOUND')
    expect(log.size).toBe(0)
  })

  test('a position that does not exist is refused', async () => {
    const streams = new ResumableStreams()
    const { done } = await streams.start('s', stream([says('x')]))
    await done
    for (const after of [-1, 1.5, 99])
      expect(await codeOf(collect(streams.read('s', { after })))).toBe('STREAM_POSITION')
  })

  test('an ended stream is forgotten after its time, a running one is not', async () => {
    const clock = manualClock()
    const log = memoryEvents({ clock })
    const streams = new ResumableStreams({ log, ttlMs: 1000 })
    const { source, say, end } = manualSource()
    const { done } = await streams.start('s', source)
    say('x')
    await collect(streams.read('s'), () => true)
    clock.advance(5000)
    expect(log.size).toBe(1)
    end()
    await done
    clock.advance(999)
    expect(textOf(await collect(streams.read('s')))).toBe('x')
    clock.advance(1)
    expect(await codeOf(collect(streams.read('s')))).toBe('STREAM_NOT_FOUND')
    expect(log.size).toBe(0)
  })

  test('an id is used once, and there is room for so many', async () => {
    const log = memoryEvents({ maxStreams: 2 })
    const streams = new ResumableStreams({ log, maxRunning: 2 })
    const open = () => manualSource()
    const first = open()
    const { done } = await streams.start('a', first.source)
    expect(await codeOf(streams.start('a', open().source))).toBe('STREAM_EXISTS')
    await streams.start('b', open().source)
    expect(await codeOf(streams.start('c', open().source))).toBe('STREAM_LIMIT')
    first.end()
    await done
    await new Promise((resolve) => setTimeout(resolve, 1))
    expect(await codeOf(streams.start('c', open().source))).toBe('STREAM_LIMIT') // 'a' is still kept
  })

  test.each<[string, ResumableStreamOptions]>([
    ['events', { maxEvents: 3 }],
    ['characters', { maxCharacters: 400 }],
  ])('a stream with too many %s is stopped, and its readers are told', async (_, options) => {
    const streams = new ResumableStreams(options)
    const source = stream([says(story)])
    const { done } = await streams.start('s', source)
    expect(await codeOf(collect(streams.read('s')))).toBe('STREAM_TOO_LARGE')
    await done
    await expect(source.turn).rejects.toMatchObject({ code: 'CANCELLED' })
  })

  test('a log that cannot be written stops the model and cuts its readers off', async () => {
    const log = memoryEvents()
    const broken = {
      create: (id: string) => log.create(id),
      read: (id: string, after: number) => log.read(id, after),
      changed: (id: string, after: number, signal: AbortSignal) => log.changed(id, after, signal),
      append: () => Promise.reject(new Error('disk full')),
    }
    const streams = new ResumableStreams({ log: broken })
    const source = stream([[waits(5), says(story)]])
    const { done } = await streams.start('s', source)
    expect(await codeOf(collect(streams.read('s')))).toBe('STREAM_CUT')
    await expect(done).rejects.toThrow('disk full')
    await expect(source.turn).rejects.toMatchObject({ code: 'CANCELLED' })
  })
})

describe('cancelling', () => {
  test('a cancelled stream ends with CANCELLED for all, and stops the model', async () => {
    const streams = new ResumableStreams()
    const source = stream([[says('Half'), waits(Infinity)]])
    const run = await streams.start('s', source)
    const reading = collect(streams.read('s'))
    await collect(streams.read('s'), ({ event }) => event.type === 'content_block_stop')
    run.cancel('enough')
    await expect(reading).rejects.toMatchObject({ code: 'CANCELLED' })
    await expect(source.turn).rejects.toMatchObject({ code: 'CANCELLED' })
  })

  const manualSleep = () => {
    let wake = (): void => {}
    const sleep = (_: number, signal: AbortSignal): Promise<void> =>
      new Promise((resolve, reject) => {
        wake = resolve
        signal.addEventListener('abort', () => reject(signal.reason as Error))
      })
    return { sleep, wake: () => wake() }
  }

  test('by choice, when the last reader has left and none came back in time', async () => {
    const { sleep, wake } = manualSleep()
    const streams = new ResumableStreams({ cancelUnreadAfterMs: 100, sleep })
    const source = stream([[says('Half'), waits(Infinity)]])
    const run = await streams.start('s', source)
    await collect(streams.read('s'), ({ event }) => event.type === 'text_delta')
    wake()
    await run.done
    await expect(source.turn).rejects.toMatchObject({ code: 'CANCELLED' })
  })

  test('a reader that comes back in time saves the stream', async () => {
    const { sleep, wake } = manualSleep()
    const streams = new ResumableStreams({ cancelUnreadAfterMs: 100, sleep })
    const { source, say, end } = manualSource()
    const { done } = await streams.start('s', source)
    say('a')
    await collect(streams.read('s'), () => true)
    const back = collect(streams.read('s', { after: 1 }))
    await new Promise((resolve) => setTimeout(resolve, 2))
    wake()
    say('b')
    end()
    await done
    expect(textOf(await back)).toBe('b')
  })
})

describe('server-sent events', () => {
  const request = (lastEventId?: string, signal?: AbortSignal) =>
    new Request('http://localhost/', {
      ...(lastEventId !== undefined && { headers: { 'last-event-id': lastEventId } }),
      ...(signal && { signal }),
    })

  test('what one side sends, the other reads: events, numbers, end', async () => {
    const streams = new ResumableStreams()
    await streams.start('s', stream([says(story)]))
    const response = await streams.respond('s', request())
    expect(response.headers.get('content-type')).toContain('text/event-stream')
    const over = await collect(readSse(response.body!))
    expect(over).toEqual(await collect(streams.read('s')))
    const rest = await streams.respond('s', request('3'))
    expect(await collect(readSse(rest.body!))).toEqual(over.slice(3))
  })

  test('a browser that has everything is told to stay away', async () => {
    const streams = new ResumableStreams()
    const { done } = await streams.start('s', stream([says('x')]))
    await done
    const text = await (await streams.respond('s', request())).text()
    const last = /id: (\d+)\n(?=data: null)/.exec(text)?.[1]
    expect(text).toContain(`event: end\nid: ${last}\ndata: null\n\n`)
    expect((await streams.respond('s', request(last))).status).toBe(204)
  })

  test('a failure crosses the wire typed, a cut one says where to go on', async () => {
    const streams = new ResumableStreams()
    await streams.start('s', stream([[says('Half'), fails({ code: 'TIMEOUT' })]]))
    const response = await streams.respond('s', request())
    await expect(collect(readSse(response.body!))).rejects.toMatchObject({ code: 'TIMEOUT' })
    const whole = await (await streams.respond('s', request())).text()
    const cut = new Blob([whole.slice(0, whole.indexOf('event: failure'))]).stream()
    await expect(collect(readSse(cut))).rejects.toMatchObject({ code: 'STREAM_CUT' })
  })

  test('a Last-Event-ID that is no number is refused', async () => {
    const streams = new ResumableStreams()
    await streams.start('s', stream([says('x')]))
    for (const id of ['abc', '-1', '1e3', ''])
      await expect(streams.respond('s', request(id))).rejects.toMatchObject({
        code: 'STREAM_POSITION',
      })
  })

  test('silence is filled with heartbeats', async () => {
    const waiting: (() => void)[] = []
    const sleep = (_: number, signal: AbortSignal): Promise<void> =>
      new Promise((resolve, reject) => {
        waiting.push(resolve)
        signal.addEventListener('abort', () => reject(signal.reason as Error))
      })
    const streams = new ResumableStreams({ sleep })
    const { source, say, end } = manualSource()
    await streams.start('s', source)
    const response = await streams.respond('s', request(), { heartbeatMs: 10 })
    const reader = response.body!.getReader()
    const next = async () => new TextDecoder().decode((await reader.read()).value)
    const first = next()
    await new Promise((resolve) => setTimeout(resolve, 2))
    waiting.at(-1)?.()
    expect(await first).toBe(': heartbeat\n\n')
    say('a')
    expect(await next()).toContain('id: 1\ndata: {"type":"text_delta"')
    end()
    expect(await next()).toContain('event: end')
    expect((await reader.read()).done).toBe(true)
  })

  test('a closed connection is a reader that left', async () => {
    const streams = new ResumableStreams({ cancelUnreadAfterMs: 0 })
    const source = stream([[says('Half'), waits(Infinity)]])
    const { done } = await streams.start('s', source)
    const response = await streams.respond('s', request())
    const reader = response.body!.getReader()
    await reader.read()
    await reader.cancel()
    await done
    await expect(source.turn).rejects.toMatchObject({ code: 'CANCELLED' })
  })
})

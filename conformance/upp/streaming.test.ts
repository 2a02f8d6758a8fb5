import { manualClock, sequentialIds } from '@skein/base'
import {
  isUPPError,
  llm,
  StreamEventType,
  type LLMInstance,
  type StreamEvent,
  type Tool,
  type ToolContext,
  type ToolUseStrategy,
  type Turn,
} from '@skein/ai'
import {
  calls,
  cuts,
  fails,
  reasons,
  says,
  scripted,
  waits,
  type ScriptStep,
} from '@skein/ai/testing'
import { describe, expect, test } from 'vitest'
import { settlesWithin } from '../support/settles-within.ts'
import { askVendor, type Way } from './support/ask-vendor.ts'
import { vendorCases } from './vendors.ts'

function tool(name: string, run: Tool['run'], more: Partial<Tool> = {}): Tool {
  return { name, description: `Runs ${name}.`, parameters: { type: 'object' }, run, ...more }
}

const later = <T>(value: T, ms = 5): Promise<T> =>
  new Promise((resolve) => setTimeout(() => resolve(value), ms))

const echo = tool('echo', (args) => args)

const script: ScriptStep[] = [
  [reasons('let me see'), says('Two calls.'), calls('echo', { n: 1 }), calls('echo', '')],
  says('All of it is done.'),
]

async function collect(stream: AsyncIterable<StreamEvent>): Promise<StreamEvent[]> {
  const events: StreamEvent[] = []
  for await (const event of stream) events.push(event)
  return events
}

const failureOf = async (promise: Promise<unknown>): Promise<{ code?: string; turn?: Turn }> =>
  (await promise.then(
    () => ({}),
    (error: unknown) => error,
  )) as { code?: string; turn?: Turn }

describe('events', () => {
  test('UPP-088 an event has type, index and delta', async () => {
    const events = await collect(llm({ model: scripted(script), tools: [echo] }).stream('x'))
    expect(events.length).toBeGreaterThan(10)
    for (const event of events) {
      expect(Object.keys(event).sort()).toEqual(['delta', 'index', 'type'])
      expect(typeof event.index).toBe('number')
      expect(typeof event.delta).toBe('object')
    }
  })

  test('UPP-089 blocks open, fill and close within their message; indexes are unique there', async () => {
    const events = await collect(llm({ model: scripted(script), tools: [echo] }).stream('x'))
    let inMessage = false
    const open = new Map<number, string>()
    const used = new Set<number>()
    for (const event of events) {
      if (event.type === 'message_start') {
        expect(inMessage).toBe(false)
        inMessage = true
        used.clear()
      } else if (event.type === 'message_stop') {
        expect(open.size).toBe(0)
        inMessage = false
      } else if (event.type === 'content_block_start') {
        expect(inMessage && !used.has(event.index)).toBe(true)
        used.add(event.index)
        open.set(event.index, event.delta.block)
      } else if (event.type === 'content_block_stop') expect(open.delete(event.index)).toBe(true)
      else if (event.type.startsWith('tool_execution')) expect(inMessage).toBe(false)
      else expect(`${open.get(event.index)}_delta`).toBe(event.type)
    }
    expect(inMessage).toBe(false)
    const types = new Set(events.map(({ type }) => type))
    for (const type of ['text_delta', 'reasoning_delta', 'tool_call_delta', 'tool_execution_end'])
      expect(types).toContain(type)
  })

  test('UPP-089 there are thirteen event types', () => {
    expect(Object.values(StreamEventType).sort()).toEqual(
      [
        'text_delta',
        'reasoning_delta',
        'image_delta',
        'audio_delta',
        'video_delta',
        'object_delta',
        'tool_call_delta',
        'tool_execution_start',
        'tool_execution_end',
        'message_start',
        'message_stop',
        'content_block_start',
        'content_block_stop',
      ].sort(),
    )
  })

  test('UPP-090 a tool’s start is seen while it runs, and its end before its siblings end', async () => {
    let release = (): void => {}
    const gate = new Promise<void>((resolve) => (release = resolve))
    const slow = tool('slow', () => gate)
    const quick = tool('quick', () => 'q')
    const model = scripted([[calls('slow'), calls('quick')], says('ok')])
    const seen: string[] = []
    for await (const event of llm({ model, tools: [slow, quick] }).stream('x')) {
      if (event.type !== 'tool_execution_start' && event.type !== 'tool_execution_end') continue
      seen.push(`${event.type} ${event.delta.toolName}`)
      if (event.type === 'tool_execution_end' && event.delta.toolName === 'quick') release()
    }
    // Were events held back until the batch is done, the gate would never open.
    expect(seen.slice(0, 2).sort()).toEqual([
      'tool_execution_start quick',
      'tool_execution_start slow',
    ])
    expect(seen.slice(2)).toEqual(['tool_execution_end quick', 'tool_execution_end slow'])
  })

  test('tool execution events carry the index of their call’s block', async () => {
    const events = await collect(llm({ model: scripted(script), tools: [echo] }).stream('x'))
    const blocks = new Map(
      events.flatMap((event) =>
        event.type === 'content_block_start' && event.delta.toolCallId
          ? [[event.delta.toolCallId, event.index] as const]
          : [],
      ),
    )
    expect([...blocks.values()]).toEqual([2, 3])
    const executions = events.filter((event) => event.type === 'tool_execution_end')
    expect(executions.map(({ index }) => index).sort()).toEqual([2, 3])
    for (const { index, delta } of executions) expect(blocks.get(delta.toolCallId)).toBe(index)
  })
})

describe('the turn of a stream', () => {
  const sources = (): { ids: () => string; clock: { now(): number } } => ({
    ids: sequentialIds('m'),
    clock: manualClock(),
  })

  test('UPP-091 it equals the turn of generate, whatever the pieces', async () => {
    const generated = await llm({
      model: scripted(script),
      tools: [echo],
      ...sources(),
    }).generate('x')
    for (const chunks of [1, 3, 'word', 1_000] as const) {
      const model = scripted(script, { chunks })
      const stream = llm({ model, tools: [echo], ...sources() }).stream('x')
      await collect(stream)
      expect(await stream.turn).toEqual(generated)
    }
  })

  test.each(vendorCases)('UPP-091 $name: from the vendor’s own answers', async (vendor) => {
    for (const answers of [vendor.answers.text, vendor.answers.calls]) {
      const ask = async (way: Way): Promise<object> => {
        const options = { toolStrategy: { maxIterations: 0 } }
        const { turn } = await askVendor(vendor, 'tools', { way, answers, options })
        const { response, usage, stopReason, cycles } = turn
        const { raw: _, ...counts } = usage // as the vendor writes it, which may differ in a stream
        const { content, toolCalls = [] } = response
        const called = toolCalls.map((call) => [call.toolName, call.arguments])
        return { content, called, counts, stopReason, cycles }
      }
      expect(await ask('stream')).toEqual(await ask('generate'))
    }
  })

  test('the streamed text is the text of the message', async () => {
    const stream = llm({ model: scripted([[says('a b'), says(' c')]]) }).stream('x')
    const pieces = (await collect(stream)).flatMap((event) =>
      event.type === 'text_delta' ? event.delta.text : [],
    )
    expect(pieces.join('')).toBe((await stream.turn).response.text)
  })
})

describe('reading a stream', () => {
  const stream = (...steps: ScriptStep[]): ReturnType<LLMInstance['stream']> =>
    llm({ model: scripted(steps.length > 0 ? steps : [says('one two three')]) }).stream('x')

  test('UPP-087 only its turn', async () => {
    expect((await stream().turn).response.text).toBe('one two three')
  })

  test('UPP-087 the turn first, then events: none is lost', async () => {
    const result = stream()
    const turn = result.turn
    await later(null)
    const types = (await collect(result)).map(({ type }) => type)
    expect(types[0]).toBe('message_start')
    expect(types.filter((type) => type === 'text_delta')).toHaveLength(3)
    expect((await turn).response.text).toBe('one two three')
  })

  test('UPP-087 the turn inside the loop does not lock up', async () => {
    const result = stream()
    const texts: string[] = []
    for await (const event of result) {
      if (event.type === 'message_start') texts.push((await result.turn).response.text)
      if (event.type === 'text_delta') texts.push(event.delta.text)
    }
    expect(texts).toEqual(['one two three', 'one', ' two', ' three'])
  })

  test('nothing is sent before it is read', async () => {
    const model = scripted([says('x')])
    const result = llm({ model }).stream('x')
    await later(null)
    expect(model.requests).toHaveLength(0)
    await result.turn
    expect(model.requests).toHaveLength(1)
  })

  test('UPP-087 leaving the loop aborts the call and settles the turn', async () => {
    const model = scripted([[says('a b c'), waits(Infinity)]])
    const result = llm({ model }).stream('x')
    for await (const event of result) if (event.type === 'text_delta') break
    const error = await failureOf(result.turn)
    expect(error.code).toBe('CANCELLED')
    expect(error.turn?.response.text).toBe('a')
    expect(model.requests[0]!.signal.aborted).toBe(true)
    expect(await collectRest(result)).toBe('INVALID_REQUEST')
  })

  test('leaving at the very last event is not an abort', async () => {
    const ended: string[] = []
    const middleware = [
      {
        name: 'probe',
        onEnd: () => void ended.push('end'),
        onError: () => void ended.push('error'),
      },
    ]
    const result = llm({ model: scripted([says('all')]), middleware }).stream('x')
    for await (const event of result) if (event.type === 'message_stop') break
    expect((await result.turn).response.text).toBe('all')
    expect(ended).toEqual(['end'])
  })

  test('a second iteration is refused with a typed error', async () => {
    const result = stream()
    await collect(result)
    expect(await collectRest(result)).toBe('INVALID_REQUEST')
    expect((await result.turn).response.text).toBe('one two three')
  })

  test('a stream can be returned from an async function', async () => {
    const make = async (): Promise<ReturnType<LLMInstance['stream']>> => stream()
    const result = await make()
    expect('then' in result).toBe(false)
    expect((await collect(result)).length).toBeGreaterThan(3)
  })

  test('two readers of one iterator share the events in order', async () => {
    const events = stream()[Symbol.asyncIterator]()
    const [first, second] = await Promise.all([events.next(), events.next()])
    expect([first.value?.type, second.value?.type]).toEqual([
      'message_start',
      'content_block_start',
    ])
  })

  const collectRest = async (result: AsyncIterable<StreamEvent>): Promise<string | undefined> =>
    (await failureOf(collect(result))).code
})

describe('failure', () => {
  test('an error in the middle reaches iterator and turn, with what was produced', async () => {
    const model = scripted([calls('echo'), [says('part'), fails({ code: 'PROVIDER_ERROR' })]])
    const stream = llm({ model, tools: [echo] }).stream('x')
    const error = await failureOf(collect(stream))
    expect(error.code).toBe('PROVIDER_ERROR')
    expect(await failureOf(stream.turn)).toBe(error)
    expect(error.turn).toMatchObject({ cycles: 1, toolExecutions: [{ toolName: 'echo' }] })
    expect(error.turn?.usage.totalTokens).toBeGreaterThan(0)
    expect(error.turn?.messages.map(({ type, text }) => `${type} ${text}`)).toEqual([
      'user x',
      'assistant ',
      'tool_result {}',
      'assistant part',
    ])
    expect(JSON.stringify(error)).not.toContain('part')
  })

  test('a request that failed immediately leaves the inputs and no empty answer', async () => {
    const error = await failureOf(llm({ model: scripted([fails('x')]) }).generate('x'))
    expect(error.turn?.messages.map(({ type }) => type)).toEqual(['user'])
    expect(error.turn).toMatchObject({ cycles: 0, stopReason: 'other', response: { content: [] } })
  })

  test('an answer without its terminal event is not an answer', async () => {
    for (const ask of [
      (m: LLMInstance) => m.generate('x'),
      (m: LLMInstance) => m.stream('x').turn,
    ]) {
      const error = await failureOf(ask(llm({ model: scripted([[says('cut o'), cuts()]]) })))
      expect(error.code).toBe('INVALID_RESPONSE')
      expect(error.turn?.response.text).toBe('cut o')
    }
  })

  test('whatever a provider throws becomes a UPPError with its cause', async () => {
    const cause = new TypeError('x is not a function')
    const error = await llm({ model: scripted([fails(cause)]) })
      .generate('x')
      .catch((e: unknown) => e)
    expect(isUPPError(error)).toBe(true)
    expect(error).toMatchObject({
      code: 'PROVIDER_ERROR',
      provider: 'scripted',
      modality: 'llm',
      cause,
    })
  })
})

describe('abort', () => {
  /** Aborts while tools run, and tells how long the call took to settle. */
  async function abortDuring(
    tools: Tool[],
    step: ScriptStep,
    onToolCall: NonNullable<ToolUseStrategy['onToolCall']> = () => {},
  ): Promise<{
    inTime: boolean
    error: { code?: string; turn?: Turn }
    iterated: { code?: string }
  }> {
    const stream = llm({
      model: scripted([step, says('never')]),
      tools,
      toolStrategy: { maxConcurrency: 2, onToolCall },
    }).stream('x')
    const iterated = failureOf(collect(stream))
    await later(null, 20)
    stream.abort()
    const turn = failureOf(stream.turn)
    const inTime = await settlesWithin(50, turn)
    return { inTime, error: await turn, iterated: await iterated }
  }

  test('UPP-092 it reaches running tools through their signal', async () => {
    let reason: unknown
    const listening = tool('listening', (_: unknown, { signal }: ToolContext) => {
      return new Promise((resolve) =>
        signal.addEventListener('abort', () => {
          reason = signal.reason
          resolve('stopped')
        }),
      )
    })
    const { error } = await abortDuring([listening], calls('listening'))
    expect(reason).toBeDefined()
    expect(error.code).toBe('CANCELLED')
  })

  test('UPP-093 calls that have not started are skipped', async () => {
    const started: unknown[] = []
    const slow = tool('slow', async ({ n }: { n: number }) => {
      started.push(n)
      await later(null, 40)
    })
    const four = [0, 1, 2, 3].map((n) => calls('slow', { n }))
    const asked: unknown[] = []
    await abortDuring([slow], four, (_tool, { n }) => void asked.push(n))
    await later(null, 100)
    expect(started).toEqual([0, 1])
    expect(asked).toEqual([0, 1])
    started.length = 0
    const one = { ...slow, sequential: true }
    await abortDuring([one], four)
    await later(null, 100)
    expect(started).toEqual([0])
  })

  test('UPP-093 a call that was waiting for approval does not run', async () => {
    const ran: unknown[] = []
    const gated = tool('gated', () => ran.push('ran'), { approval: () => later(true, 40) })
    await abortDuring([gated], calls('gated'))
    await later(null, 100)
    expect(ran).toEqual([])
  })

  test('UPP-094 iterator and turn reject with CANCELLED', async () => {
    const started: string[] = []
    const slow = tool('slow', () => (started.push('slow'), later(null, 200)))
    const { error, iterated } = await abortDuring([slow], calls('slow'))
    expect(started).toEqual(['slow'])
    expect(error.code).toBe('CANCELLED')
    expect(iterated).toBe(error)
  })

  test('UPP-094 generate rejects with it too, in an inference and in a tool', async () => {
    const slow = tool('slow', () => later(null, 200))
    for (const step of [waits(Infinity), calls('slow')]) {
      const controller = new AbortController()
      const { signal } = controller
      const asking = llm({ model: scripted([step, says('never')]), tools: [slow], signal })
      setTimeout(() => controller.abort(), 20)
      expect((await failureOf(asking.generate('x'))).code).toBe('CANCELLED')
    }
  })

  test('it settles within 50 ms even if tools and model are deaf', async () => {
    const deaf = tool('deaf', () => later('too late', 400))
    const quick = tool('quick', () => 'in time')
    const during = await abortDuring([deaf, quick], [calls('quick', { n: 1 }), calls('deaf')])
    expect(during.inTime).toBe(true)
    expect(during.error.turn?.toolExecutions).toMatchObject([
      { toolName: 'quick', arguments: { n: 1 }, result: 'in time' },
      { toolName: 'deaf', isError: true, isUnknown: true },
    ])
    expect(during.error.turn?.openCalls).toEqual([])
    expect(during.error.turn?.usage.totalTokens).toBeGreaterThan(0)

    const model = scripted([[says('a'), waits(400)]])
    const deafModel = { ...model, provider: deafTo(model.provider) }
    const stream = llm({ model: deafModel }).stream('x')
    const turn = failureOf(stream.turn)
    await later(null, 20)
    stream.abort()
    expect(await settlesWithin(50, turn)).toBe(true)
    expect((await turn).code).toBe('CANCELLED')
  })

  test('abort before the first read sends nothing; after the end it changes nothing', async () => {
    const model = scripted([says('x'), says('y')])
    const early = llm({ model }).stream('x')
    early.abort()
    expect((await failureOf(early.turn)).code).toBe('CANCELLED')
    expect(model.requests).toHaveLength(0)
    const late = llm({ model }).stream('x')
    await late.turn
    late.abort()
    expect((await late.turn).response.text).toBe('x')
  })

  test('a stream no one pulls any more still settles on abort', async () => {
    const stream = llm({ model: scripted([[says('a b'), waits(Infinity)]]) }).stream('x')
    const events = stream[Symbol.asyncIterator]()
    await events.next()
    stream.abort()
    expect((await failureOf(events.next())).code).toBe('CANCELLED')
    expect((await events.next()).done).toBe(true)
  })
})

/** The same provider, but it never learns of an abort. */
function deafTo(provider: ReturnType<typeof scripted>['provider']): typeof provider {
  const { llm: handler } = provider.handlers
  const bind: NonNullable<typeof handler>['bind'] = (reference) => {
    const bound = handler!.bind(reference)
    const signal = new AbortController().signal
    return {
      ...bound,
      stream: (request) => bound.stream({ ...request, signal }),
      complete: (request) => bound.complete({ ...request, signal }),
    }
  }
  return Object.assign((id: string) => provider(id), {
    handlers: { llm: { ...handler!, bind } },
  }) as typeof provider
}

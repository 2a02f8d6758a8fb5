import { manualClock, type JsonObject } from '@skein/base'
import {
  executeTools,
  llm,
  UserMessage,
  type CallPorts,
  type Middleware,
  type StreamEvent,
  type Tool,
  type ToolBatch,
  type ToolCall,
  type ToolContext,
} from '@skein/ai'
import { calls, scripted, waits } from '@skein/ai/testing'
import { describe, expect, test } from 'vitest'

function tool(name: string, run: Tool['run'], more: Partial<Tool> = {}): Tool {
  return { name, description: `Runs ${name}.`, parameters: { type: 'object' }, run, ...more }
}

const callTo = (toolName: string, args: JsonObject = {}, toolCallId = 'c1'): ToolCall => ({
  toolCallId,
  toolName,
  arguments: args,
})

/** A promise that the test settles itself. */
function signpost(): { readonly reached: Promise<void>; readonly reach: () => void } {
  let reach = (): void => {}
  const reached = new Promise<void>((resolve) => (reach = resolve))
  return { reached, reach }
}

describe('a call that is stopped before it runs', () => {
  const abort = new Error('stop')
  type Stopper = (stop: () => void) => Partial<ToolBatch> & { approval?: Tool['approval'] }
  const places: Record<string, Stopper> = {
    'onToolCall of the strategy': (stop) => ({ strategy: { onToolCall: stop } }),
    onBeforeCall: (stop) => ({ strategy: { onBeforeCall: stop } }),
    approval: (stop) => ({ approval: () => (stop(), true) }),
    'the gate': (stop) => ({
      open: () => ({ gate: { admit: () => (stop(), { type: 'allow' as const }) } }),
    }),
    'onToolCall of middleware': (stop) => ({ hooks: { onToolCall: stop } }),
    'the journal': (stop) => ({ open: () => ({ journal: { commit: stop } }) }),
  }

  async function seen(place: Stopper, stop: () => void, signal: AbortSignal) {
    const log: string[] = []
    const { approval, ...batch } = place(stop)
    const act = tool('act', () => log.push('ran'), approval && { approval })
    const reports = executeTools({
      calls: [callTo('act'), callTo('act', {}, 'c2')],
      mode: 'sequential',
      tools: [act],
      clock: manualClock(),
      signal,
      ...batch,
    })
    try {
      for await (const events of reports) log.push(...events.map(({ type }) => type))
    } catch (error) {
      log.push((error as { code?: string }).code ?? (error as Error).message)
    }
    return log
  }

  test.each(Object.entries(places))(
    'UPP-090 UPP-093 an abort in %s: no start event, nothing runs, CANCELLED',
    async (_, place) => {
      const controller = new AbortController()
      const log = await seen(place, () => controller.abort(abort), controller.signal)
      expect(log).toEqual(['CANCELLED'])
    },
  )

  test.each(Object.entries(places).filter(([name]) => name !== 'approval'))(
    'UPP-090 an error in %s: no start event, nothing runs',
    async (_, place) => {
      let count = 0
      const fail = (): void => {
        count++
        throw abort
      }
      const log = await seen(place, fail, new AbortController().signal)
      expect(log).toEqual([expect.stringMatching(/^(stop|INVALID_REQUEST)$/)])
      expect(count).toBe(1) // the next call does not even begin
    },
  )
})

describe('the signal of a call', () => {
  type Waiting = (started: () => void, aborted: () => void) => Partial<Tool>
  const wait =
    (started: () => void, aborted: () => void) =>
    (_: unknown, { signal }: ToolContext): Promise<boolean> =>
      new Promise((_resolve, reject) => {
        signal.addEventListener('abort', () => {
          aborted()
          reject(signal.reason as Error)
        })
        started()
      })
  const ways: Record<string, Waiting> = {
    run: (...told) => ({ run: wait(...told) }),
    'run with a time limit': (...told) => ({ run: wait(...told), timeoutMs: 60_000 }),
    approval: (...told) => ({ approval: wait(...told) }),
  }

  test.each(Object.entries(ways))('UPP-092 an abort is seen in %s', async (_, waiting) => {
    const [start, abort] = [signpost(), signpost()]
    const act = tool('act', () => 'ran', waiting(start.reach, abort.reach))
    const stream = llm({ model: scripted([calls('act')]), tools: [act] }).stream('go')
    const turn = expect(stream.turn).rejects.toMatchObject({ code: 'CANCELLED' })
    await start.reached
    stream.abort()
    await abort.reached
    await turn
  })

  test.each(['generate', 'stream', 'executeTools'] as const)(
    'UPP-034 an abort while a tool runs in %s names the provider and the modality',
    async (way) => {
      const [start, abort] = [signpost(), signpost()]
      const act = tool('act', wait(start.reach, abort.reach))
      const controller = new AbortController()
      const { signal } = controller
      const model = llm({ model: scripted([calls('act')]), tools: [act], signal })
      const batch = { calls: [callTo('act')], signal, streaming: false }
      const ways = {
        generate: () => model.generate('go'),
        stream: () => model.stream('go').turn,
        executeTools: () => model.executeTools(batch).next(),
      }
      const failed = expect(ways[way]()).rejects.toMatchObject({
        code: 'CANCELLED',
        provider: 'scripted',
        modality: 'llm',
      })
      await start.reached
      controller.abort()
      await abort.reached
      await failed
    },
  )

  test.each(['instance', 'batch'] as const)(
    'UPP-092 executeTools of an instance listens to the signal of the %s',
    async (which) => {
      const controllers = { instance: new AbortController(), batch: new AbortController() }
      const [start, abort] = [signpost(), signpost()]
      const act = tool('act', wait(start.reach, abort.reach))
      const model = llm({ model: scripted([]), tools: [act], signal: controllers.instance.signal })
      const batch = { calls: [callTo('act')], signal: controllers.batch.signal, streaming: false }
      const result = expect(model.executeTools(batch).next()).rejects.toMatchObject({
        code: 'CANCELLED',
      })
      await start.reached
      controllers[which].abort()
      await abort.reached
      await result
    },
  )

  test.each(['instance', 'own'] as const)(
    'UPP-094 an inference with a signal of its own is cancelled by that of the %s',
    async (which) => {
      const controllers = { instance: new AbortController(), own: new AbortController() }
      const step = () => {
        controllers[which].abort()
        return waits(Infinity)
      }
      const model = llm({ model: scripted([step]), signal: controllers.instance.signal })
      const events = model.infer([new UserMessage('x')], { signal: controllers.own.signal })
      await expect(events.next()).rejects.toMatchObject({ code: 'CANCELLED' })
    },
  )

  test('UPP-092 the context of a gate cannot replace the signal, the id or the name', async () => {
    const { signal } = new AbortController()
    const wrong = { signal: AbortSignal.abort(), toolCallId: 'other', toolName: 'other', more: 1 }
    const seen: unknown[] = []
    const act = tool('act', (_: unknown, context: ToolContext) => seen.push(context))
    const gate = { admit: () => ({ type: 'allow' as const, context: wrong }) }
    const batch = { calls: [callTo('act')], tools: [act], clock: manualClock(), signal }
    for (const open of [() => ({ gate }), () => ({ context: wrong })])
      for await (const _ of executeTools({ ...batch, open }));
    expect(seen).toMatchObject([
      { toolCallId: 'c1', toolName: 'act', more: 1, signal: { aborted: false } },
      { toolCallId: 'c1', toolName: 'act', more: 1, signal: { aborted: false } },
    ])
  })

  test('UPP-092 a tool that yields its progress is asked to stop and does not continue', async () => {
    const [first, gate, closed] = [signpost(), signpost(), signpost()]
    const log: string[] = []
    const act = tool('act', async function* () {
      try {
        yield 'first'
        first.reach()
        await gate.reached
        yield 'second'
        log.push('continued')
      } finally {
        closed.reach()
      }
    })
    const stream = llm({ model: scripted([calls('act')]), tools: [act] }).stream('go')
    const turn = expect(stream.turn).rejects.toMatchObject({ code: 'CANCELLED' })
    await first.reached
    stream.abort()
    await turn
    gate.reach()
    await closed.reached
    expect(log).toEqual([])
  })
})

describe('executeTools of an instance', () => {
  test.each([true, false])(
    'UPP-104 UPP-099 UPP-106 has the hooks, the state and the stream hooks of the instance; streaming %s',
    async (streaming) => {
      const log: unknown[] = []
      const state = new Map<string, unknown>([['probe:n', 1]])
      const middleware: Middleware = {
        name: 'probe',
        onToolCall: ({ toolCallId }, context) => void log.push(['call', toolCallId, context.state]),
        onToolResult: ({ toolCallId }, result, context, outcome) =>
          void log.push(['result', toolCallId, result, context.streaming, outcome.type]),
        onStreamEvent: (event, context) => {
          log.push([event.type, context.state])
          return event.type === 'tool_execution_start' ? null : [event, event]
        },
      }
      const act = tool('act', (args) => args)
      const model = llm({ model: scripted([]), tools: [act], middleware: [middleware] })
      const running = model.executeTools({ calls: [callTo('act', { n: 2 })], streaming, state })
      const shown: string[] = []
      for (let step = await running.next(); ; step = await running.next()) {
        if (step.done) break
        shown.push(...step.value.map(({ type }) => type))
      }
      const events = (type: string): unknown[] => (streaming ? [[type, state]] : [])
      expect(log).toEqual([
        ['call', 'c1', state],
        ...events('tool_execution_start'),
        ['result', 'c1', { n: 2 }, streaming, 'done'],
        ...events('tool_execution_end'),
      ])
      expect((log[0] as unknown[])[2]).toBe(state)
      expect(shown).toEqual(streaming ? ['tool_execution_end', 'tool_execution_end'] : [])
    },
  )

  test('UPP-120 a call with ports of the instance and of the batch still asks for approval', async () => {
    const asked: string[] = []
    const approval = ({ who }: { who: string }) => asked.push(who) < 0
    const act = tool('act', () => asked.push('ran'), { approval })
    const journals: string[] = []
    const open = (name: string) => (): CallPorts => ({
      journal: { commit: ({ type }) => void journals.push(`${name} ${type}`) },
    })
    const model = llm({ model: scripted([]), tools: [act], open: open('own') })
    const calls = [callTo('act', { who: 'model' })]
    const step = await model.executeTools({ calls, streaming: false, open: open('batch') }).next()
    expect(asked).toEqual(['model'])
    expect(journals).toEqual(['own call_end', 'batch call_end'])
    expect(step).toMatchObject({
      done: true,
      value: { settled: [{ outcome: { type: 'denied' } }] },
    })
  })
})

test('UPP-107 executions whose events were dropped are in the turn of a failed call', async () => {
  const drop: Middleware = {
    name: 'drop',
    onStreamEvent: (event: StreamEvent) => (event.type.startsWith('tool_') ? null : event),
  }
  const gate = signpost()
  const tools = [
    tool('quick', () => 'done', { sequential: true }),
    tool('stuck', () => (gate.reach(), new Promise(() => {})), { sequential: true }),
  ]
  const model = scripted([[calls('quick', { n: 1 }), calls('stuck')]])
  const stream = llm({ model, tools, middleware: [drop] }).stream('go')
  const turn = stream.turn.catch((error: unknown) => error)
  await gate.reached
  stream.abort()
  expect(await turn).toMatchObject({
    code: 'CANCELLED',
    turn: { toolExecutions: [{ toolName: 'quick', arguments: { n: 1 }, result: 'done' }] },
  })
})

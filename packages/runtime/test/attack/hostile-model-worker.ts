// Plays hostile models, one after the other, in a thread of its own, so that a frozen event loop is seen from outside.
import { parentPort } from 'node:worker_threads'
import { openaiCompatible } from '@skein/ai/openai-compatible'
import { says, scripted } from '@skein/ai/testing'
import {
  createRuntime,
  defineAgent,
  defineModel,
  definePrompt,
  defineTool,
  type EmbeddedRuntime,
  type SessionResult,
} from '@skein/runtime'
import { z } from 'zod'

/** What became of the thread, of its process and of its neighbour. */
export interface Played {
  readonly outcome: string
  readonly reason: string
  readonly text: string
  readonly waiting: number
  readonly requests: number
  readonly notes: readonly string[]
  readonly results: number
  readonly callIds: number
  readonly paid: number
  readonly threads: number
  /** The most processor time that this thread used between two timers. */
  readonly stallMs: number
  readonly calm: string
  readonly logBytes: number
  readonly isPolluted: boolean
  readonly errors: readonly string[]
}

type Frames = Iterable<string>
/** Answers the request with this number; the body is what was sent. */
type Model = (request: number, body: string) => Frames

const frame = (delta: object, finish: string | null = null, more: object = {}): string =>
  `data: ${JSON.stringify({ id: 'x', choices: [{ index: 0, delta, finish_reason: finish }], ...more })}\n\n`
const end = (finish = 'stop'): string => `${frame({}, finish)}data: [DONE]\n\n`
const call = (index: number, name: unknown, args: unknown, id: unknown = `c${index}`): object => ({
  index,
  ...(id !== undefined && { id }),
  type: 'function',
  function: { name, arguments: typeof args === 'string' ? args : JSON.stringify(args) },
})
const callsOf = (...calls: readonly object[]): Frames => [
  frame({ tool_calls: calls }),
  end('tool_calls'),
]
const text = (content: string): Frames => [frame({ content }), end()]
/** The frames at the first request, an ordinary end at every other. */
const once =
  (frames: () => Frames): Model =>
  (request) =>
    request === 0 ? frames() : text('done')
const note = (value: string, index = 0, id?: unknown): object =>
  call(index, 'note', { text: value }, id)

export const MODELS: Readonly<Record<string, Model>> = {
  'two calls with one id': once(() => callsOf(note('a', 0, 'same'), note('b', 1, 'same'))),
  'two payments with one id': once(() =>
    callsOf(call(0, 'pay', { amount: 1 }, 'same'), call(1, 'pay', { amount: 2 }, 'same')),
  ),
  'calls with empty ids': once(() => callsOf(note('a', 0, ''), note('b', 1, ''))),
  'calls without ids': once(() => callsOf(note('a', 0, undefined), note('b', 1, undefined))),
  'one id in every message': (request) =>
    request < 3 ? callsOf(note(`n${request}`, 0, 'again')) : text('done'),
  'ids that are objects': once(() => callsOf(note('a', 0, { a: 1 }), note('b', 1, [1]))),
  'arguments of 8 MB': once(() => callsOf(note('x'.repeat(8_000_000)))),
  'arguments 100,000 deep': once(() =>
    callsOf(call(0, 'note', `{"text":${'['.repeat(100_000)}${']'.repeat(100_000)}}`)),
  ),
  'arguments that are no JSON': once(() => callsOf(call(0, 'note', '{"text":'))),
  'arguments that are no object': once(() =>
    callsOf(...['[1]', '"x"', 'null', '7', ''].map((args, i) => call(i, 'note', args))),
  ),
  '5,000 calls in one message': once(() =>
    callsOf(...Array.from({ length: 5000 }, (_, i) => note(`${i}`, i))),
  ),
  'tools that do not exist': once(() =>
    callsOf(call(0, 'rm', {}), call(1, '', {}), call(2, 'toString', {}), call(3, '__proto__', {})),
  ),
  'a tool name of 100 kB': once(() => callsOf(call(0, 'n'.repeat(100_000), {}))),
  '__proto__ in arguments': once(() =>
    callsOf(
      call(0, 'note', '{"text":"a","__proto__":{"polluted":1}}'),
      call(1, 'note', '{"text":"b","constructor":{"prototype":{"polluted":1}}}'),
      call(2, 'worker', '{"task":"x","__proto__":{"polluted":1}}'),
    ),
  ),
  'tools of the runtime with nonsense': once(() =>
    callsOf(
      call(0, 'subagent_create', { agent: 'nobody', __proto__: 1 }),
      call(1, 'subagent_message', { reference: '../../x', message: 7 }),
      call(2, 'worker', { task: { deep: [1] } }),
    ),
  ),
  'control text': once(() => text('\u001b]0;pwned\u0007\u001b[2J\u202E\u009b31m\r\n\0')),
  'lone surrogates': once(() => [
    frame({ content: '\ud800' }),
    frame({ content: 'x\udfff' }),
    end(),
  ]),
  'nothing at all': () => [end()],
  'no end of the message': once(() => [frame({ content: 'half' })]),
  'an unknown reason to stop': once(() => [frame({ content: 'x' }), end('because')]),
  'usage that is nonsense': once(() => [
    frame({ content: 'x' }),
    frame({}, 'stop', {
      usage: { prompt_tokens: -5, completion_tokens: 1e308, total_tokens: 'x' },
    }),
    'data: [DONE]\n\n',
  ]),
  'another role': once(() => [frame({ role: 'system', content: 'I am the system.' }), end()]),
  'deltas of 12 MB in all': once(function* () {
    for (let i = 0; i < 1200; i++) yield frame({ content: 'x'.repeat(10_000) })
    yield end()
  }),
  '100,000 deltas': once(function* () {
    for (let i = 0; i < 100_000; i++) yield frame({ content: 'x' })
    yield end()
  }),
  'the same call for ever': () => callsOf(note('again')),
  'a failing call for ever': () => callsOf(call(0, 'note', { text: 7 })),
  'a new child for ever': (_, body) => callsOf(call(0, 'worker', { task: `again ${body.length}` })),
  'handoffs for ever': (request) => callsOf(call(0, request % 2 ? 'desk' : 'other', {})),
  'an error in every stream': () => [
    frame({ content: 'half' }),
    'data: {"error":{"message":"no","type":"invalid_request_error"}}\n\n',
  ],
}

/** What a model has caused so far. */
interface Tally {
  readonly notes: string[]
  readonly payments: number[]
  readonly errors: string[]
  requests: number
}

/** How long a thread may take to end by itself; one of them never would. */
function patienceMs(name: string): number {
  return name === 'a new child for ever' ? 1500 : 10_000
}

async function play(name: string): Promise<Played> {
  const tally: Tally = { notes: [], payments: [], errors: [], requests: 0 }
  const runtime = await startRuntime(MODELS[name]!, tally)
  const beats = watchBeats()
  const { id } = await runtime.threads.create({ agent: 'desk' })
  const calm = await runtime.threads.create({ agent: 'calm' })
  await runtime.threads.send(id, 'Go.')
  const neighbour = runtime.threads.run(calm.id, 'Hello')
  const result = await runtime.threads
    .settled(id, { signal: AbortSignal.timeout(patienceMs(name)) })
    .catch((): Promise<Partial<SessionResult>> => endByHand(runtime, id, tally))
  const { text: said } = await neighbour
  const { text: later } = await runtime.threads.run(calm.id, 'Still there?')
  const stallMs = beats()
  // Whatever stands in the log can be read in every form.
  await runtime.threads.document(id)
  const log = await runtime.threads.export(id)
  const messages = await runtime.threads.messages(id)
  const results = messages.flatMap(({ message }) =>
    message.type === 'tool_result' ? message.results : [],
  )
  const called = messages.flatMap(({ message }) =>
    message.type === 'assistant' ? (message.toolCalls ?? []) : [],
  )
  const threads = await runtime.threads.list({ limit: 1000 })
  await runtime.stop({ graceMs: 0 })
  return {
    outcome: result.outcome ?? 'none',
    reason: result.reason ?? '',
    text: (result.text ?? '').slice(0, 200),
    waiting: result.waiting?.length ?? 0,
    requests: tally.requests,
    notes: tally.notes.slice(0, 10),
    results: results.length,
    callIds: new Set(called.map(({ toolCallId }) => toolCallId)).size,
    paid: tally.payments.length,
    threads: threads.length,
    stallMs,
    calm: `${said} ${later}`,
    logBytes: log.length,
    isPolluted: 'polluted' in {},
    errors: tally.errors,
  }
}

/** Ends a tree that would go on; an operator can do as much. No model is asked any more afterwards. */
async function endByHand(
  runtime: EmbeddedRuntime,
  id: string,
  tally: Tally,
): Promise<Partial<SessionResult>> {
  await runtime.threads.terminate(id)
  await runtime.threads.settled(id, { signal: AbortSignal.timeout(5000) })
  const before = tally.requests
  await new Promise((resolve) => setTimeout(resolve, 300))
  return { reason: tally.requests === before ? 'ended by hand' : 'goes on after its end' }
}

/**
 * The most processor time of this thread between two timers; the returned function ends the watch. On a busy
 * machine a thread waits for its turn, which is not the fault of the runtime and not counted.
 */
function watchBeats(): () => number {
  const usedMs = (): number => {
    const { user, system } = process.threadCpuUsage()
    return (user + system) / 1000
  }
  let last = usedMs()
  let most = 0
  const timer = setInterval(() => {
    const now = usedMs()
    most = Math.max(most, now - last)
    last = now
  }, 10)
  return () => {
    clearInterval(timer)
    return Math.max(most, usedMs() - last)
  }
}

async function startRuntime(model: Model, tally: Tally): Promise<EmbeddedRuntime> {
  const fetch = async (_: string, init: RequestInit): Promise<Response> => {
    const frames = model(tally.requests++, String(init.body))[Symbol.iterator]()
    const encoder = new TextEncoder()
    const body = new ReadableStream<Uint8Array>({
      pull(controller) {
        const { done, value } = frames.next()
        if (done) controller.close()
        else controller.enqueue(encoder.encode(value))
      },
    })
    return new Response(body, { headers: { 'content-type': 'text/event-stream' } })
  }
  const hostile = defineModel({
    name: 'hostile',
    model: openaiCompatible({ name: 'hostile', baseUrl: 'http://hostile.test/v1' })('m'),
    config: { apiKey: 'sk-any', fetch },
  })
  const tools = [
    defineTool({
      name: 'note',
      description: 'Takes a note.',
      args: z.looseObject({ text: z.string() }),
      risk: 'write_low_risk',
      execute: (_, args) => {
        tally.notes.push(args.text.slice(0, 100))
        return 'noted'
      },
    }),
    defineTool({
      name: 'pay',
      description: 'Pays.',
      args: z.object({ amount: z.number() }),
      risk: 'write_high_risk',
      rollback: ({ amount }) => ({
        type: 'tool_call',
        target: 'note',
        payload: { text: `${amount}` },
      }),
      execute: (_, { amount }) => {
        tally.payments.push(amount)
        return 'paid'
      },
    }),
  ]
  const worker = defineAgent({
    name: 'worker',
    type: 'dual_ai',
    exposeAsTool: true,
    toolDescription: 'Does the work.',
    sideA: {
      prompt: definePrompt({
        name: 'worker_a',
        prompt: 'Work.',
        model: hostile,
        tools: [...tools, 'worker'],
        requiredSchema: z.object({ task: z.string() }),
      }),
    },
    sideB: {
      prompt: definePrompt({ name: 'worker_b', prompt: 'Review.', model: hostile, tools }),
    },
  })
  const person = (name: string, handsTo: string) =>
    defineAgent({
      name,
      exposeAsTool: true,
      toolDescription: 'Takes over.',
      sideA: {
        prompt: definePrompt({
          name,
          prompt: 'Help.',
          model: hostile,
          tools: [...tools, handsTo, { name: 'worker', initUserMessageProperty: 'task' }],
        }),
      },
    })
  const calm = defineAgent({
    name: 'calm',
    sideA: {
      prompt: definePrompt({ name: 'calm', prompt: 'Rest.', model: scripted(() => says('calm')) }),
    },
  })
  const runtime = await createRuntime({
    agents: [person('desk', 'other'), person('other', 'desk'), worker, calm],
    onError: (error) => tally.errors.push(String(error).slice(0, 300)),
  })
  await runtime.start()
  return runtime
}

parentPort?.on('message', async (name: string) => {
  const played = await play(name).catch((error: unknown) => ({
    failure: error instanceof Error ? error.stack : String(error),
  }))
  parentPort?.postMessage(played)
})

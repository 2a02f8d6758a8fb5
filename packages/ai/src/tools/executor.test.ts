import { manualClock } from '@skein/base'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { CallPorts, ToolEffect } from './call-ports.ts'
import { AssistantMessage, ToolResultMessage } from '../contract/message.ts'
import { executeTools, type BatchResult, type ToolBatch } from './executor.ts'
import { succeededTools } from './succeeded-tools.ts'
import { defer, deny, type Tool, type ToolCall, type ToolOutcome } from '../contract/tool.ts'

const later = <T>(value: T, ms = 5): Promise<T> =>
  new Promise((resolve) => setTimeout(() => resolve(value), ms))

function tool(name: string, more: Partial<Tool> = {}): Tool {
  return { name, description: '', parameters: {}, run: () => name, ...more }
}

/** `a`, `b2` … call the tool of that letter; the text is the id. */
function call(id: string, more: Partial<ToolCall> = {}): ToolCall {
  return { toolCallId: id, toolName: id.replace(/\d+$/, ''), arguments: {}, ...more }
}

async function run(
  batch: Pick<ToolBatch, 'calls' | 'tools'> & Partial<ToolBatch>,
): Promise<BatchResult & { events: string[] }> {
  const events: string[] = []
  const generator = executeTools({
    signal: new AbortController().signal,
    clock: { now: () => performance.now() },
    ...batch,
  })
  for (;;) {
    const step = await generator.next()
    if (step.done) return { ...step.value, events }
    for (const { type, delta } of step.value)
      events.push(`${type === 'tool_execution_start' ? '+' : '-'}${delta.toolCallId}`)
  }
}

const outcomes = ({ settled }: BatchResult): string[] =>
  settled.map(({ call: { toolCallId }, outcome }) => `${toolCallId} ${outcome.type}`)

/** Tools that write down when they start and end. */
function traced(names: Record<string, Partial<Tool>>): { tools: Tool[]; log: string[] } {
  const log: string[] = []
  const tools = Object.entries(names).map(([name, more]) =>
    tool(name, {
      run: async () => {
        log.push(`+${name}`)
        await later(null, 3)
        log.push(`-${name}`)
      },
      ...more,
    }),
  )
  return { tools, log }
}

describe('order', () => {
  test('sequential tools go first, one at a time in call order; the rest overlap after them', async () => {
    const { tools, log } = traced({
      p: {},
      s: { sequential: true },
      q: {},
      t: { sequential: true },
    })
    await run({ tools, calls: [call('p'), call('t'), call('q'), call('s')] })
    expect(log).toEqual(['+t', '-t', '+s', '-s', '+p', '+q', '-p', '-q'])
  })

  test('mode sequential runs calls one by one in call order', async () => {
    const { tools, log } = traced({ a: {}, b: {}, s: { sequential: true } })
    await run({ tools, calls: [call('b'), call('a'), call('s')], mode: 'sequential' })
    expect(log).toEqual(['+b', '-b', '+a', '-a', '+s', '-s'])
  })

  test('a dependency in the batch is waited for', async () => {
    const { tools, log } = traced({ a: { dependsOn: ['b'] }, b: { dependsOn: ['c'] }, c: {} })
    const result = await run({ tools, calls: [call('a'), call('b'), call('c')] })
    expect(log).toEqual(['+c', '-c', '+b', '-b', '+a', '-a'])
    expect(outcomes(result)).toEqual(['a done', 'b done', 'c done'])
  })

  test('a dependency overrides the order of sequential tools', async () => {
    const { tools, log } = traced({ s: { sequential: true, dependsOn: ['p'] }, p: {}, q: {} })
    await run({ tools, calls: [call('s'), call('p'), call('q')] })
    expect(log).toEqual(['+p', '-p', '+s', '-s', '+q', '-q'])
  })

  test('a dependency outside the batch must have succeeded earlier', async () => {
    const { tools, log } = traced({ a: { dependsOn: ['b'] }, b: {} })
    const missing = await run({ tools, calls: [call('a')] })
    expect(missing.settled[0]?.outcome).toMatchObject({
      type: 'error',
      message: expect.stringContaining('"b"') as unknown,
    })
    expect(log).toEqual([])
    const satisfied = await run({ tools, calls: [call('a')], succeeded: new Set(['b']) })
    expect(outcomes(satisfied)).toEqual(['a done'])
  })

  test('when a dependency fails or is denied, its dependants are told and do not run', async () => {
    const failures: Partial<Tool>[] = [
      { run: () => Promise.reject(new Error('no')) },
      { approval: () => false },
    ]
    for (const failing of failures) {
      const { tools, log } = traced({ a: { dependsOn: ['b'] }, b: failing, c: {} })
      const result = await run({ tools, calls: [call('a'), call('b'), call('c')] })
      expect(log).toEqual(['+c', '-c'])
      expect(result.settled[0]?.outcome).toMatchObject({ type: 'error' })
    }
  })

  test('a dependency that is no tool is ignored with a warning', async () => {
    const result = await run({ tools: [tool('a', { dependsOn: ['zz'] })], calls: [call('a')] })
    expect(outcomes(result)).toEqual(['a done'])
    expect(result.warnings).toMatchObject([{ code: 'unknown_dependency' }])
    expect(result.warnings[0]?.message).toContain('"zz"')
  })

  test('`after` waits for calls to finish, whatever came of them; unknown ids are ignored', async () => {
    const { tools, log } = traced({ a: {}, b: { run: () => Promise.reject(new Error('no')) } })
    const calls = [call('a', { after: ['b', 'nope', 'a'] }), call('b')]
    const result = await run({ tools, calls })
    expect(result.events.indexOf('+a')).toBeGreaterThan(result.events.indexOf('-b'))
    expect(log).toEqual(['+a', '-a'])
  })

  test('a cycle is broken: its calls run one by one in call order, with a warning', async () => {
    const { tools, log } = traced({
      a: { dependsOn: ['b'] },
      b: { dependsOn: ['a'] },
      c: { dependsOn: ['b'] },
      d: {},
    })
    const result = await run({ tools, calls: [call('a'), call('b'), call('c'), call('d')] })
    expect(log).toEqual(['+d', '-d', '+a', '-a', '+b', '-b', '+c', '-c'])
    expect(outcomes(result)).toEqual(['a done', 'b done', 'c done', 'd done'])
    expect(result.warnings).toMatchObject([{ code: 'dependency_cycle' }])
  })

  test('no more than maxConcurrency run at once', async () => {
    let running = 0
    let most = 0
    const slow = tool('a', {
      run: async () => {
        most = Math.max(most, ++running)
        await later(null, 2)
        running--
      },
    })
    const calls = Array.from({ length: 9 }, (_, n) => call(`a${n}`))
    for (const maxConcurrency of [3, 1]) {
      most = 0
      const result = await run({ tools: [slow], calls, strategy: { maxConcurrency } })
      expect(most).toBe(maxConcurrency)
      expect(result.settled).toHaveLength(9)
    }
  })

  test('results keep call order whoever finishes first', async () => {
    const slow = tool('a', { run: ({ ms }: { ms: number }) => later(ms, ms) })
    const calls = [20, 1, 10].map((ms, n) => call(`a${n}`, { arguments: { ms } }))
    const result = await run({ tools: [slow], calls })
    expect(outcomes(result)).toEqual(['a0 done', 'a1 done', 'a2 done'])
    expect(result.events.slice(3)).toEqual(['-a1', '-a2', '-a0'])
  })

  test('law: whatever the graph, every call is settled once and no dependency is overtaken', async () => {
    const names = ['a', 'b', 'c', 'd', 'e']
    const toolArbitrary = fc.record({
      sequential: fc.boolean(),
      dependsOn: fc.subarray(names),
    })
    await fc.assert(
      fc.asyncProperty(
        fc.tuple(...names.map(() => toolArbitrary)),
        fc.array(
          fc.record({
            name: fc.constantFrom(...names),
            after: fc.array(fc.nat(7), { maxLength: 2 }),
          }),
          { maxLength: 8 },
        ),
        fc.constantFrom(1, 2, Infinity),
        async (made, drawn, maxConcurrency) => {
          const log: string[] = []
          const tools = made.map((options, index) =>
            tool(names[index]!, {
              ...options,
              run: async (_: unknown, { toolCallId }: { toolCallId: string }) => {
                log.push(`+${toolCallId}`)
                await Promise.resolve()
                log.push(`-${toolCallId}`)
              },
            }),
          )
          const calls = drawn.map(({ name, after }, n) =>
            call(`${name}${n}`, { after: after.map((m) => `${drawn[m]?.name}${m}`) }),
          )
          const succeeded = new Set(names)
          const result = await run({ tools, calls, strategy: { maxConcurrency }, succeeded })
          expect(result.settled.map(({ call: { toolCallId } }) => toolCallId)).toEqual(
            calls.map(({ toolCallId }) => toolCallId),
          )
          expect(new Set(log).size).toBe(log.length)
          if (result.warnings.some(({ code }) => code === 'dependency_cycle')) return
          for (const { toolCallId, toolName, after = [] } of calls) {
            const { dependsOn = [] } = tools.find(({ name }) => name === toolName)!
            const before = calls.filter(
              (other) =>
                other.toolCallId !== toolCallId &&
                (dependsOn.includes(other.toolName) || after.includes(other.toolCallId)),
            )
            for (const other of before)
              expect(log.indexOf(`-${other.toolCallId}`)).toBeLessThan(
                log.indexOf(`+${toolCallId}`),
              )
          }
        },
      ),
      { seed: 11, numRuns: process.env['SKEIN_DEEP'] ? 2_000 : 150 },
    )
  })
})

describe('deferral', () => {
  const ask = tool('ask', { approval: () => defer({ kind: 'approval', request: null }) })

  test('siblings finish first; what depends on the deferred call stays open', async () => {
    const { tools, log } = traced({ a: { dependsOn: ['ask'] }, b: {}, c: { dependsOn: ['a'] } })
    const calls = [call('ask'), call('a'), call('b'), call('c')]
    const result = await run({ tools: [...tools, ask], calls })
    expect(outcomes(result)).toEqual(['ask deferred', 'b done'])
    expect(log).toEqual(['+b', '-b'])
  })

  test('known outcomes are not run again, and count for their dependants', async () => {
    const { tools, log } = traced({ a: { dependsOn: ['ask'] }, b: {} })
    const settled = new Map<string, ToolOutcome>([
      ['ask', { type: 'done', result: 'yes' }],
      ['b', { type: 'done', result: 'earlier' }],
    ])
    const calls = [call('ask'), call('a'), call('b')]
    const result = await run({ tools: [...tools, ask], calls, settled })
    expect(outcomes(result)).toEqual(['ask done', 'a done', 'b done'])
    expect(log).toEqual(['+a', '-a'])
    expect(result.events).toEqual(['+a', '-a'])
    const denied = await run({
      tools: [...tools, ask],
      calls: calls.slice(0, 2),
      settled: new Map([['ask', { type: 'denied', reason: 'no' }]]),
    })
    expect(outcomes(denied)).toEqual(['ask denied', 'a error'])
  })

  test('a tool that defers while it runs has a start and no end', async () => {
    const timer = tool('timer', { run: () => defer({ kind: 'timer', request: { ms: 5 } }) })
    const result = await run({ tools: [timer], calls: [call('timer')] })
    expect(result.events).toEqual(['+timer'])
    expect(result.settled[0]?.outcome).toEqual({
      type: 'deferred',
      request: { kind: 'timer', request: { ms: 5 } },
    })
  })
})

describe('limits', () => {
  test('a tool that only reads and takes too long is an error, its signal aborts, its late result is dropped', async () => {
    let aborted: unknown
    const slow = tool('slow', {
      risk: 'read_only',
      timeoutMs: 10,
      run: async (_: unknown, { signal }: { signal: AbortSignal }) => {
        signal.addEventListener('abort', () => (aborted = signal.reason))
        return later('late', 60)
      },
    })
    const result = await run({ tools: [slow], calls: [call('slow')] })
    expect(result.settled[0]?.outcome).toMatchObject({
      type: 'error',
      message: 'The tool "slow" took longer than 10 ms and was stopped.',
    })
    expect(aborted).toMatchObject({ name: 'TimeoutError' })
  })

  describe('a write that takes too long', () => {
    const strategy = { stopGraceMs: 40 }
    const write = (ms: number, more: Partial<Tool> = {}): Tool =>
      tool('write', { timeoutMs: 10, run: () => later('written', ms), ...more })

    test('is kept if it ends within the grace', async () => {
      const result = await run({ tools: [write(30)], calls: [call('write')], strategy })
      expect(result.settled[0]?.outcome).toEqual({ type: 'done', result: 'written' })
    })

    test('is an error that may be repeated if it is idempotent', async () => {
      const tools = [write(30, { idempotent: true })]
      const result = await run({ tools, calls: [call('write')], strategy })
      expect(result.settled[0]?.outcome).toMatchObject({ type: 'error' })
    })

    test('is unknown after the grace, in the outcome, the event and the execution', async () => {
      const ended: unknown[] = []
      const generator = executeTools({
        tools: [write(120)],
        calls: [call('write')],
        strategy,
        signal: new AbortController().signal,
        clock: { now: () => performance.now() },
      })
      let step = await generator.next()
      for (; !step.done; step = await generator.next())
        for (const event of step.value)
          if (event.type === 'tool_execution_end') ended.push(event.delta)
      const message =
        'The tool "write" took longer than 10 ms and did not stop. Whether it took effect is unknown; find out before you call it again.'
      expect(step.value.settled[0]?.outcome).toEqual({ type: 'unknown', message })
      expect(ended).toMatchObject([{ result: message, isError: true, isUnknown: true }])
    })

    test('is an error if it obeys its signal, or fails within the grace', async () => {
      const obeys = tool('obeys', {
        timeoutMs: 10,
        run: (_: unknown, { signal }: { signal: AbortSignal }) =>
          new Promise((_, reject) =>
            signal.addEventListener('abort', () => reject(signal.reason as Error)),
          ),
      })
      const fails = tool('fails', {
        timeoutMs: 10,
        run: async () => {
          await later(null, 20)
          throw new Error('own error')
        },
      })
      const tools = [obeys, fails]
      const { settled } = await run({ tools, calls: [call('obeys'), call('fails')], strategy })
      expect(settled.map(({ outcome }) => outcome)).toMatchObject([
        { type: 'error', message: 'The tool "obeys" took longer than 10 ms and was stopped.' },
        { type: 'error', message: 'own error' },
      ])
    })

    test('that yields its progress runs on until the grace ends', async () => {
      const log: string[] = []
      const steps = (name: string, ms: number): Tool =>
        tool(name, {
          timeoutMs: 10,
          run: async function* () {
            for (let n = 1; n <= 3; n++) {
              await later(null, ms)
              log.push(`${name} ${n}`)
              yield n
            }
          },
        })
      const tools = [steps('quick', 8), steps('slow', 150)]
      const { settled } = await run({
        tools,
        calls: [call('quick'), call('slow')],
        strategy: { stopGraceMs: 250 },
      })
      expect(settled.map(({ outcome }) => outcome.type)).toEqual(['done', 'unknown'])
      await later(null, 250)
      expect(log.filter((line) => line.startsWith('slow')).length).toBeLessThan(3)
    })
  })

  test('a tool that blocks the event loop for longer than its timeout is an error that says it has run', async () => {
    const block = (): string => {
      const until = performance.now() + 60
      while (performance.now() < until);
      return 'late'
    }
    const failing = (): never => {
      block()
      throw new Error('own error')
    }
    const tools = [
      tool('blocking', { timeoutMs: 20, run: block }),
      tool('failing', { timeoutMs: 20, run: failing }),
      tool('patient', { timeoutMs: 10_000, run: block }),
    ]
    const result = await run({ tools, calls: tools.map(({ name }) => call(name)) })
    const [blocking, failed, patient] = result.settled.map(({ outcome }) => outcome)
    expect(blocking).toMatchObject({
      type: 'error',
      message: expect.stringMatching(
        /^The tool "blocking" took \d+ ms, longer than its 20 ms\. .* has run to its end\./,
      ),
    })
    expect(failed).toMatchObject({ type: 'error', message: 'own error' })
    expect(patient).toEqual({ type: 'done', result: 'late' })
  })

  test.each([2 ** 31 - 1, 2 ** 31, Infinity])(
    'a limit of %d ms is not reached at once',
    async (timeoutMs) => {
      const slow = tool('slow', { timeoutMs, run: () => later('done', 10) })
      const { settled } = await run({ tools: [slow], calls: [call('slow')] })
      expect(settled[0]?.outcome).toEqual({ type: 'done', result: 'done' })
    },
  )

  test('an abort while a tool with a timeout runs reaches it too', async () => {
    const controller = new AbortController()
    let aborted = false
    const slow = tool('slow', {
      timeoutMs: 10_000,
      run: (_: unknown, { signal }: { signal: AbortSignal }) =>
        new Promise((resolve) => signal.addEventListener('abort', () => resolve((aborted = true)))),
    })
    setTimeout(() => controller.abort(), 5)
    const running = run({ tools: [slow], calls: [call('slow')], signal: controller.signal })
    await expect(running).rejects.toMatchObject({ code: 'CANCELLED' })
    expect(aborted).toBe(true)
  })

  test('UPP-093 a batch that begins after the abort asks nobody and starts nothing', async () => {
    const asked: string[] = []
    const note = (what: string) => (): void => void asked.push(what)
    const running = run({
      calls: [
        call('a'),
        call('nobody'),
        call('c', { invalidArguments: { text: '{', reason: '' } }),
      ],
      tools: [
        tool('a', { run: note('run'), approval: () => asked.push('approval') > 0 }),
        tool('c'),
      ],
      signal: AbortSignal.abort('enough'),
      strategy: { onToolCall: note('onToolCall'), onBeforeCall: note('onBeforeCall') },
      hooks: { onToolCall: note('hook') },
      open: () => ({ journal: { commit: note('commit') } }),
    })
    await expect(running).rejects.toMatchObject({ code: 'CANCELLED', cause: 'enough' })
    await later(null)
    expect(asked).toEqual([])
  })

  test('a call whose approval comes after the abort is neither journalled nor run', async () => {
    const controller = new AbortController()
    const log: string[] = []
    const late = tool('late', {
      run: () => log.push('run'),
      approval: async () => {
        controller.abort()
        return later(true)
      },
    })
    const commit = ({ type }: ToolEffect): void => void log.push(type)
    const hooks = { onToolCall: () => void log.push('hook') }
    const { signal } = controller
    const running = run({
      tools: [late],
      calls: [call('late')],
      signal,
      hooks,
      open: () => ({ journal: { commit } }),
    })
    await expect(running).rejects.toMatchObject({ code: 'CANCELLED' })
    await later(null, 20)
    expect(log).toEqual([])
  })

  test('a reader that leaves stops the tools', async () => {
    let aborted = false
    const slow = tool('slow', {
      run: (_: unknown, { signal }: { signal: AbortSignal }) =>
        new Promise(() => signal.addEventListener('abort', () => (aborted = true))),
    })
    const { signal } = new AbortController()
    const batch = { tools: [slow], calls: [call('slow')], signal, clock: manualClock() }
    for await (const events of executeTools(batch)) {
      expect(events).toHaveLength(1)
      break
    }
    expect(aborted).toBe(true)
  })
})

describe('journal', () => {
  test('commit is awaited before each start and after each end, with what really ran', async () => {
    const log: string[] = []
    const commit = async (effect: ToolEffect): Promise<void> => {
      await later(null, 2)
      const { type, call: of } = effect
      const outcome = effect.type === 'call_end' ? ` ${effect.outcome.type}` : ''
      log.push(`${type} ${of.toolCallId} ${JSON.stringify(of.arguments)}${outcome}`)
    }
    const act = tool('act', { run: () => void log.push('run') })
    const strategy = { onBeforeCall: () => ({ proceed: true, params: { n: 2 } }) }
    const calls = [call('act', { arguments: { n: 1 } })]
    await run({ tools: [act], calls, open: () => ({ journal: { commit } }), strategy })
    expect(log).toEqual(['call_start act {"n":2}', 'run', 'call_end act {"n":2} done'])
  })

  test('calls that do not run are journalled with their outcome alone', async () => {
    const effects: string[] = []
    const commit = (effect: ToolEffect): void => {
      effects.push(effect.type === 'call_end' ? `${effect.outcome.type}` : 'start')
    }
    const tools = [
      tool('no', { approval: () => false }),
      tool('wait', { approval: () => defer({ kind: 'input', request: 'name?' }) }),
    ]
    const invalid = call('no2', { invalidArguments: { text: '{', reason: 'cut' } })
    await run({
      tools,
      calls: [call('no'), call('wait'), call('zz'), invalid],
      open: () => ({ journal: { commit } }),
    })
    expect(effects.sort()).toEqual(['deferred', 'denied', 'error', 'error'])
  })

  test('when the journal fails, a call that has its outcome is journalled before the batch ends', async () => {
    const log: string[] = []
    const lost = new Error('fence lost')
    const tools = [tool('a'), tool('b')]
    const commit = async ({ call: { toolName }, type }: ToolEffect): Promise<void> => {
      // The outcome of `a` is being written while the start of `b` is refused.
      if (toolName === 'b') {
        await later(null, 5)
        throw lost
      }
      if (type === 'call_end') await later(null, 40)
      log.push(type)
    }
    const batch = { tools, calls: [call('a'), call('b')], open: () => ({ journal: { commit } }) }
    await expect(run(batch)).rejects.toBe(lost)
    expect(log).toEqual(['call_start', 'call_end'])
    await later(null, 60)
    expect(log).toEqual(['call_start', 'call_end'])
  })

  test('when the journal fails the effect does not happen, and the error is its own', async () => {
    const ran: string[] = []
    const lost = new Error('fence lost')
    const tools = [
      tool('a', { run: () => ran.push('a') }),
      tool('b', { run: () => later('b', 30) }),
    ]
    const commit = ({ call: of }: ToolEffect): void => {
      if (of.toolCallId === 'a') throw lost
    }
    await expect(
      run({ tools, calls: [call('b'), call('a')], open: () => ({ journal: { commit } }) }),
    ).rejects.toBe(lost)
    expect(ran).toEqual([])
  })
})

test('the context has the caller’s extras next to signal and names', async () => {
  const seen: unknown[] = []
  const a = tool('a', {
    run: (_: unknown, context: object) => void seen.push(context),
    approval: (_: unknown, context: object) => {
      seen.push(context)
      return true
    },
  })
  const open = ({ toolCallId }: ToolCall): CallPorts => ({
    context: { agentId: 'x', key: `s/${toolCallId}` },
  })
  await run({ tools: [a], calls: [call('a1')], open })
  for (const one of seen)
    expect(one).toMatchObject({ agentId: 'x', key: 's/a1', toolCallId: 'a1', toolName: 'a' })
  expect(seen).toHaveLength(2)
})

test('arguments of calls that came from elsewhere are copied before they are frozen', async () => {
  const own = { list: [1] }
  const seen: unknown[] = []
  await run({
    tools: [tool('a', { run: (args) => void seen.push(args) })],
    calls: [call('a', { arguments: own })],
  })
  expect(seen).toEqual([own])
  expect(Object.isFrozen(own) || Object.isFrozen(own.list)).toBe(false)
  expect(Object.isFrozen(seen[0])).toBe(true)
})

test('approval can say why it denies, and the model is told', async () => {
  const ran: string[] = []
  const refund = tool('refund', {
    approval: () => deny('Refunds are closed on Sundays.'),
    run: () => ran.push('refund'),
  })
  const { settled } = await run({ calls: [call('refund')], tools: [refund] })
  expect(settled[0]!.outcome).toEqual({ type: 'denied', reason: 'Refunds are closed on Sundays.' })
  expect(ran).toEqual([])
})

test('a thousand calls without an order are not searched through once per call', async () => {
  const count = 1000
  let reads = 0
  const tool: Tool = {
    name: 'work',
    description: 'Works.',
    parameters: { type: 'object' },
    get sequential() {
      reads++
      return false
    },
    run: () => 1,
  }
  const batch = Array.from({ length: count }, (_, index) => ({
    toolCallId: `call_${index}`,
    toolName: 'work',
    arguments: {},
  }))
  const events = executeTools({
    calls: batch,
    tools: [tool],
    signal: new AbortController().signal,
    clock: manualClock(),
  })
  for (;;) {
    const step = await events.next()
    if (!step.done) continue
    expect(step.value.settled.length).toBe(count)
    break
  }
  expect(reads).toBeLessThanOrEqual(4 * count)
})

test('tools that succeeded are known by the names of their calls, if their results have none', () => {
  const messages = [
    new AssistantMessage('', [call('a'), call('b'), call('c')]),
    new ToolResultMessage([
      { toolCallId: 'a', result: 1 },
      { toolCallId: 'b', result: 'no', isError: true },
      { toolCallId: 'c', toolName: 'other', result: 1 },
      { toolCallId: 'unknown', result: 1 },
    ]),
  ]
  expect([...succeededTools(messages)]).toEqual(['a', 'other'])
})

test('a call that depends on a tool needs every call of it in the message to succeed', async () => {
  let count = 0
  const a = tool('a', {
    run: () => {
      if (++count === 2) throw new Error('no')
      return count
    },
  })
  const b = tool('b', { dependsOn: ['a'] })
  const tools = [a, b]
  const result = await run({
    tools,
    calls: [call('a1'), call('a2'), call('b1')],
    mode: 'sequential',
  })
  expect(outcomes(result)).toEqual(['a1 done', 'a2 error', 'b1 error'])
})

import { agent, AgentState, type Agent, type AgentStreamEvent } from '@skein/agents'
import { loop, react } from '@skein/agents/execution'
import { memoryCheckpoints } from '@skein/agents/checkpoint'
import type { Tool } from '@skein/ai'
import { calls, says, scripted, type ScriptStep } from '@skein/ai/testing'
import { describe, expect, test } from 'vitest'
import {
  defineTaskClass,
  defineVerifier,
  type ApprovalRequest,
  type FailedSafe,
  type Run,
  type TaskClass,
} from '../src/index.ts'
import { EventGate } from '../src/adapters/uap-stream.ts'
import { governedExecution, NotDeliveredError } from '../src/adapters/uap.ts'
import { bareTools, identity, openBank, shapeOf, type Bank } from './bank.ts'

const ledger = calls('ledger', { account: 'A-1' }, { id: 'a' })
const note = calls('note', { text: 'hello' }, { id: 'b' })
const forbidden = calls('note', { text: 'forbidden' }, { id: 'c' })
const reverse = calls('reverse', { wire: 'W-1' }, { id: 'd' })
const done = says('Done.')

interface ClerkOptions {
  readonly hold?: boolean
  readonly task?: TaskClass
  readonly inner?: ReturnType<typeof loop>
  readonly more?: Partial<Parameters<typeof agent>[0]>
}

function clerk(bank: Bank, script: readonly ScriptStep[], options: ClerkOptions = {}): Agent {
  const { hold = false, task = bank.task, inner = loop(), more } = options
  const init = (): { identity: typeof identity; input: string } => ({ identity, input: 'Go.' })
  const execution = governedExecution(task, inner, { governor: bank.governor, init, hold })
  const tools: readonly Tool[] = task.tools
  return agent({ model: scripted([...script]), tools, execution, ...more }) as Agent
}

const start = (): AgentState => AgentState.initial()

/** What a failed call threw, as the agent's caller finds it. */
async function refused(call: Promise<unknown>): Promise<NotDeliveredError> {
  const error = await call.then(
    () => undefined,
    (thrown: unknown) => thrown as Error,
  )
  expect(error?.cause).toBeInstanceOf(NotDeliveredError)
  return error!.cause as NotDeliveredError
}

function failing(bank: Bank): TaskClass {
  const check = (): { check_id: string; result: 'fail' }[] => [{ check_id: 'no', result: 'fail' }]
  const verifiers = [defineVerifier({ id: 'never', timeoutMs: 1000, check })]
  return defineTaskClass({ name: 'failing', tools: bank.tools, needs: [], verifiers })
}

async function read(stream: AsyncIterable<AgentStreamEvent>): Promise<AgentStreamEvent[]> {
  const events: AgentStreamEvent[] = []
  try {
    for await (const event of stream) events.push(event)
  } catch {
    // The result says why.
  }
  return events
}

const isText = ({ upp }: AgentStreamEvent): boolean => upp?.type === 'text_delta'
const verdictOf = (events: readonly AgentStreamEvent[]): unknown =>
  events.flatMap(({ uap }) => ((uap?.type as string) === 'governed' ? [uap!.data] : []))[0]

describe('a governed call of an agent', () => {
  test.each([loop(), react()])('is delivered with its receipt ($name)', async (inner) => {
    const bank = await openBank()
    const script = inner.name === 'loop' ? [ledger, note, done] : undefined
    const steps = script ?? [says('Look.'), ledger, says('Answer.'), done]
    const { turn, state, stopReason } = await clerk(bank, steps, { inner }).generate('Go.', start())
    expect(turn.response.text).toBe('Done.')
    expect(stopReason).toBe('complete')
    expect(bank.effects).toEqual(script ? ['ledger A-1', 'note hello'] : ['ledger A-1'])
    expect(state.metadata['uaicp']).toMatchObject({
      state: 'deliver',
      request_id: expect.any(String),
      last: bank.log.lines.length - 1,
    })
    expect(AgentState.fromJSON(JSON.parse(JSON.stringify(state))).metadata).toEqual(state.metadata)
  })

  test('what policy forbids does not run, and the model is told', async () => {
    const bank = await openBank()
    const { turn } = await clerk(bank, [ledger, forbidden, done]).generate('Go.', start())
    expect(bank.effects).toEqual(['ledger A-1'])
    expect(turn.toolExecutions[1]).toMatchObject({ toolName: 'note', isError: true })
    expect(String(turn.toolExecutions[1]!.result)).toContain('POLICY_BLOCKED')
  })

  test('UAICP-02 leaves the same log as run.call', async () => {
    const [bank, other] = [await openBank(), await openBank()]
    await clerk(bank, [ledger, forbidden, note, done]).generate('Go.', start())
    const call = async (run: Run, id: string, name: string, args: object): Promise<unknown> =>
      run.call(
        other.tools.find((tool) => tool.name === name)!,
        args as never,
        { id },
      )
    await other.governor.run(other.task, { identity, input: 'Go.' }, async (run) => {
      await call(run, 'a', 'ledger', { account: 'A-1' })
      await call(run, 'c', 'note', { text: 'forbidden' }).catch(() => undefined)
      await call(run, 'b', 'note', { text: 'hello' })
      return 'Done.'
    })
    expect(shapeOf(bank.log.lines)).toEqual(shapeOf(other.log.lines))
    expect(shapeOf(bank.log.lines).join('\n')).toContain('POLICY_BLOCKED')
  })

  test('a bare tool of the same name is replaced; an ungoverned one is refused', async () => {
    const bank = await openBank()
    const bare = bareTools(bank.effects)
    const same = clerk(bank, [ledger, forbidden, done], {
      more: { tools: [bare.ledger, bare.note] as never },
    })
    await same.generate('Go.', start())
    expect(bank.effects).toEqual(['ledger A-1'])
    const other = { ...bare.note, name: 'other' }
    const stray = clerk(bank, [calls('other', { text: 'x' }), done], {
      more: { tools: [other] as never },
    })
    const error: Error = await stray.generate('Go.', start()).then(String, (thrown) => thrown)
    expect(error.cause).toMatchObject({ code: 'TOOL_UNGOVERNED' })
    expect(bank.effects).toEqual(['ledger A-1'])
  })

  test('a failing verifier: nothing is delivered, the write is undone, the checkpoint goes back', async () => {
    const bank = await openBank()
    const checkpoints = memoryCheckpoints()
    const more = { checkpoints, sessionId: 's', durability: 'sync' as const }
    const one = clerk(bank, [note, done], { task: failing(bank), more })
    const error = await refused(one.generate('Go.', start()))
    expect(error.code).toBe('VERIFICATION_FAILED')
    expect((error.result as FailedSafe).undo).toMatchObject([{ tool: 'note', status: 'done' }])
    expect(bank.effects).toEqual(['note hello', 'note void'])
    const saved = JSON.stringify(await checkpoints.load('s'))
    expect(saved).not.toContain('Done.')
    expect(saved).toContain('fail_safe')
  })

  test('a model that fails is a call that failed safe, with the cause', async () => {
    const bank = await openBank()
    const error = await refused(clerk(bank, [note]).generate('Go.', start()))
    expect(error.code).toBe('RUN_ERROR')
    expect(error.cause).toBeInstanceOf(Error)
    expect(bank.effects).toEqual(['note hello', 'note void'])
  })
})

describe('approval', () => {
  async function waiting(script: readonly ScriptStep[] = [ledger, reverse, done]): Promise<{
    bank: Bank
    one: Agent
    state: AgentState
    request: ApprovalRequest
  }> {
    const bank = await openBank()
    const one = clerk(bank, script)
    const { state, interrupts, stopReason } = await one.generate('Go.', start())
    expect(stopReason).toBe('interrupted')
    expect(interrupts).toMatchObject([{ id: 'd', kind: 'approval', path: [] }])
    expect(bank.effects).toEqual(['ledger A-1'])
    const request = interrupts![0]!.request as unknown as ApprovalRequest
    // In another process, from text.
    return { bank, one, state: AgentState.fromJSON(JSON.parse(JSON.stringify(state))), request }
  }

  test('a token lets the call run, once', async () => {
    const { bank, one, state, request } = await waiting()
    const token = await bank.sign(request)
    const answers = { d: { type: 'approve', token } } as const
    const { turn, state: next } = await one.resume(state, answers)
    expect(turn.response.text).toBe('Done.')
    expect(next.metadata['uaicp']).toMatchObject({ state: 'deliver' })
    expect(bank.effects).toEqual(['ledger A-1', 'reverse W-1'])
    const again = await refused(one.resume(state, answers))
    expect(again).toMatchObject({ code: 'STATE_CONFLICT', result: { value: 'Done.' } })
    expect(bank.effects).toEqual(['ledger A-1', 'reverse W-1'])
  })

  test.each([
    ['no answer', {}],
    ['a yes without a token', { d: { type: 'approve' } }],
    ['a forged token', { d: { type: 'approve', token: 'x.y.z' } }],
    ['a made-up result', { d: { type: 'result', value: { ok: true } } }],
  ] as const)('%s: it still waits, and nothing runs', async (_name, answers) => {
    const { bank, one, state, request } = await waiting()
    const { interrupts, state: next } = await one.resume(state, answers)
    expect(interrupts).toMatchObject([{ id: 'd', request: { id: request.id } }])
    expect(bank.effects).toEqual(['ledger A-1'])
    const token = await bank.sign(request)
    await one.resume(next, { d: { type: 'approve', token } })
    expect(bank.effects).toEqual(['ledger A-1', 'reverse W-1'])
  })

  test('a denial is logged, and the model is told', async () => {
    const { bank, one, state } = await waiting()
    const { turn } = await one.resume(state, { d: { type: 'deny', reason: 'not today' } })
    expect(turn.response.text).toBe('Done.')
    expect(bank.effects).toEqual(['ledger A-1'])
    expect(shapeOf(bank.log.lines).join('\n')).toContain('APPROVAL_DENIED')
  })

  test('two calls wait; one token wakes one, in a stream too', async () => {
    const bank = await openBank()
    const second = calls('reverse', { wire: 'W-2' }, { id: 'e' })
    const one = clerk(bank, [[ledger, reverse, second], done])
    const first = await one.generate('Go.', start())
    const requests = first.interrupts!.map(({ request }) => request as unknown as ApprovalRequest)
    expect(requests).toHaveLength(2)
    const token = await bank.sign(requests[1]!)
    const half = await one.resume(first.state, { e: { type: 'approve', token } })
    expect(half.interrupts).toMatchObject([{ id: 'd' }])
    expect(bank.effects).toEqual(['ledger A-1', 'reverse W-2'])
    const last = await bank.sign(requests[0]!)
    const stream = one.resumeStream(half.state, { d: { type: 'approve', token: last } })
    expect(verdictOf(await read(stream))).toMatchObject({ state: 'deliver' })
    expect((await stream.result).turn.response.text).toBe('Done.')
    expect(bank.effects).toEqual(['ledger A-1', 'reverse W-2', 'reverse W-1'])
  })

  test('an answer to nothing leaves the request as it was', async () => {
    const { bank, one, state, request } = await waiting()
    const lines = bank.log.lines.length
    await expect(one.resume(state, { x: { type: 'approve' } })).rejects.toThrow('"x"')
    expect(bank.log.lines).toHaveLength(lines)
    await one.resume(state, { d: { type: 'approve', token: await bank.sign(request) } })
    expect(bank.effects).toEqual(['ledger A-1', 'reverse W-1'])
  })
})

describe('the stream', () => {
  test('tells unverified events, then the verdict', async () => {
    const bank = await openBank()
    const stream = clerk(bank, [ledger, done]).stream('Go.', start())
    const events = await read(stream)
    expect(events.some(isText)).toBe(true)
    expect(events.slice(0, -1).every((event) => 'unverified' in event)).toBe(true)
    expect(verdictOf(events)).toMatchObject({ state: 'deliver', outcome: 'success' })
    expect((await stream.result).turn.response.text).toBe('Done.')
  })

  test('is retracted when the call fails safe', async () => {
    const bank = await openBank()
    const stream = clerk(bank, [note, done], { task: failing(bank) }).stream('Go.', start())
    const events = await read(stream)
    expect(events.filter(isText).every((event) => 'unverified' in event)).toBe(true)
    expect(verdictOf(events)).toMatchObject({ state: 'fail_safe' })
    expect((await refused(stream.result)).code).toBe('VERIFICATION_FAILED')
    expect(JSON.stringify(stream.state.messages)).not.toContain('Done.')
  })

  test('held back, it comes whole after delivery', async () => {
    const bank = await openBank()
    const linesAt: number[] = []
    const stream = clerk(bank, [ledger, done], { hold: true }).stream('Go.', start())
    let text = ''
    for await (const event of stream) {
      expect(event).not.toHaveProperty('unverified')
      linesAt.push(bank.log.lines.length)
      if (event.upp?.type === 'text_delta') text += event.upp.delta.text
    }
    expect(text).toBe('Done.')
    expect(new Set(linesAt)).toEqual(new Set([bank.log.lines.length]))
  })

  test('held back and failed safe, nothing of it is seen', async () => {
    const bank = await openBank()
    const one = clerk(bank, [note, done], { task: failing(bank), hold: true })
    const stream = one.stream('Go.', start())
    const events = await read(stream)
    expect(events).toHaveLength(1)
    expect(verdictOf(events)).toMatchObject({ state: 'fail_safe' })
    expect((await refused(stream.result)).code).toBe('VERIFICATION_FAILED')
  })

  test('whoever leaves it cancels the request, and its writes are undone', async () => {
    const bank = await openBank()
    const stream = clerk(bank, [note, done]).stream('Go.', start())
    for await (const { uap } of stream) if (uap?.type === 'observation') break
    await expect.poll(() => bank.effects).toEqual(['note hello', 'note void'])
    expect(shapeOf(bank.log.lines).join('\n')).toContain('CANCELLED')
  })

  test.each(['abort', 'leave'] as const)(
    'of the strategy itself: %s ends the request',
    async (how) => {
      const bank = await openBank()
      const init = (): { identity: typeof identity; input: string } => ({ identity, input: 'Go.' })
      const inner = governedExecution(bank.task, loop(), { governor: bank.governor, init })
      const execute: typeof inner.execute = async (context) => {
        const stream = inner.stream(context)
        for await (const { uap } of stream) {
          if (uap?.type !== 'observation') continue
          if (how === 'leave') break
          stream.abort()
        }
        return stream.result
      }
      const more = { execution: { ...inner, execute } }
      const error = await refused(clerk(bank, [note, done], { more }).generate('Go.', start()))
      expect(error.code).toBe('CANCELLED')
      expect(bank.effects).toEqual(['note hello', 'note void'])
    },
  )
})

test('a strategy that lets the model run the tools is governed too', async () => {
  const bank = await openBank()
  const bare = bareTools(bank.effects)
  const inner: ReturnType<typeof loop> = {
    ...loop(),
    execute: async ({ llm, input, state }) => {
      const turn = await llm.generate(state.messages, input)
      return { turn, state: state.withMessages(turn.messages) }
    },
  }
  const more = { tools: [bare.ledger, bare.note] as never }
  const one = clerk(bank, [ledger, forbidden, done], { inner, more })
  expect((await one.generate('Go.', start())).turn.response.text).toBe('Done.')
  expect(bank.effects).toEqual(['ledger A-1'])
})

test('UAICP-14 of several attempts only the events of the delivered one are emitted', async () => {
  const emitted: object[] = []
  const context = { agent: { id: 'a' }, state: { step: 1 } } as never
  const gate = new EventGate((event) => emitted.push(event), context, true)
  const attempt = (name: string) => {
    const events = (async function* () {
      yield { name }
    })()
    const stream = () =>
      Object.assign(events, { result: Promise.resolve(), abort: () => undefined })
    return { name: 's', stream, execute: () => Promise.reject(new Error('not used')) } as never
  }
  const given = { signal: new AbortController().signal } as never
  await gate.read(attempt('first'), given)
  await gate.read(attempt('second'), given)
  expect(emitted).toEqual([])
  const end = { state: 'deliver', outcome: 'success' } as const
  gate.end({ ...end, receipt: { request_id: 'r' } } as never)
  expect(emitted).toEqual([
    { name: 'second' },
    {
      source: 'uap',
      uap: { type: 'governed', step: 1, agentId: 'a', data: { ...end, request_id: 'r' } },
    },
  ])
})

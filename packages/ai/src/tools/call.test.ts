import { describe, expect, test } from 'vitest'
import { llm } from '../llm.ts'
import { calls, says, scripted } from '../testing/index.ts'
import { defer, type Tool, type ToolCall } from '../contract/tool.ts'
import type { CallPorts, ToolAdmission } from './call-ports.ts'
import { executeTools, type BatchResult, type ToolBatch } from './executor.ts'

async function run(batch: Pick<ToolBatch, 'tools'> & Partial<ToolBatch>): Promise<BatchResult> {
  const events = executeTools({
    calls: [{ toolCallId: 'c1', toolName: 'pay', arguments: { amount: 5 } }],
    signal: new AbortController().signal,
    clock: { now: () => 0 },
    ...batch,
  })
  for (;;) {
    const step = await events.next()
    if (step.done) return step.value
  }
}

/** A tool and ports that write down what happens, in order. */
function traced(
  admission: ToolAdmission,
  more: Partial<Tool> = {},
): { log: string[]; tools: Tool[]; open: () => CallPorts } {
  const log: string[] = []
  const pay: Tool = {
    name: 'pay',
    description: '',
    parameters: {},
    run: (args: unknown, { state, key }: { state?: unknown; key?: unknown }) => {
      log.push(`run ${JSON.stringify({ args, state, key })}`)
      return 'paid'
    },
    approval: (args: unknown) => log.push(`approval ${JSON.stringify(args)}`) > 0,
    ...more,
  }
  const open = (): CallPorts => ({
    context: { state: 's' },
    gate: {
      admit: ({ arguments: args }) => {
        log.push(`admit ${JSON.stringify(args)}`)
        return admission
      },
      settle: (call, outcome) => void log.push(`settle ${JSON.stringify(outcome)}`),
    },
    journal: {
      commit: (effect) => {
        const { type } = effect
        log.push(type === 'call_end' ? `end ${JSON.stringify(effect.outcome)}` : 'start')
      },
    },
    review: (_call, outcome) => {
      log.push('review')
      return outcome.type === 'done' ? { type: 'done', result: 'reviewed' } : outcome
    },
  })
  return { log, tools: [pay], open }
}

describe('the ports of a call', () => {
  test('judge, intent, run, result, settle: in this order, with the arguments that were judged', async () => {
    const snapshot = { amount: 6 }
    const { log, ...batch } = traced({ type: 'allow', arguments: snapshot, context: { key: 'k' } })
    const { settled } = await run(batch)
    expect(log).toEqual([
      'approval {"amount":5}',
      'admit {"amount":5}',
      'start',
      'run {"args":{"amount":6},"state":"s","key":"k"}',
      'review',
      'settle {"type":"done","result":"paid"}',
      'end {"type":"done","result":"reviewed"}',
    ])
    expect(settled[0]?.call.arguments).toEqual({ amount: 6 })
    expect(Object.isFrozen(settled[0]?.call.arguments) && !Object.isFrozen(snapshot)).toBe(true)
  })

  test('a call that the gate denies does not run and is not settled', async () => {
    const { log, ...batch } = traced({ type: 'deny', reason: 'No.' })
    await run(batch)
    expect(log.slice(2)).toEqual(['review', 'end {"type":"denied","reason":"No."}'])
  })

  test('a call that the gate defers stays open', async () => {
    const { log, ...batch } = traced({
      type: 'defer',
      request: { kind: 'approval', request: { by: 'ann' } },
    })
    const { settled } = await run(batch)
    expect(log.slice(2)).toEqual([
      'end {"type":"deferred","request":{"kind":"approval","request":{"by":"ann"}}}',
    ])
    expect(settled[0]?.outcome.type).toBe('deferred')
  })

  test('the gate is not asked about a call that the tool itself denied', async () => {
    const { log, ...batch } = traced({ type: 'allow' }, { approval: () => false })
    await run(batch)
    expect(log[0]).toBe('review')
  })

  test('a result that is not JSON is settled as an error with its code; the tool ran once', async () => {
    let ran = 0
    const { log, ...batch } = traced({ type: 'allow' }, { run: () => ({ n: [++ran, NaN] }) })
    const { settled } = await run(batch)
    expect(settled[0]?.outcome).toMatchObject({
      type: 'error',
      code: 'TOOL_RESULT_NOT_JSON',
      message: expect.stringContaining('result.n[1] is NaN') as unknown,
    })
    expect(ran).toBe(1)
    expect(log.some((line) => line.startsWith('settle {"type":"error"'))).toBe(true)
  })

  test('each call has ports of its own; what a gate throws fails the batch', async () => {
    const seen: string[] = []
    const calls: ToolCall[] = ['a', 'b'].map((id) => ({
      toolCallId: id,
      toolName: 'pay',
      arguments: {},
    }))
    const { tools } = traced({ type: 'allow' })
    const open = ({ toolCallId }: ToolCall): CallPorts => ({
      gate: {
        admit: (call) => {
          seen.push(`${toolCallId} ${call.toolCallId}`)
          return { type: 'allow' }
        },
        settle: () => {
          throw new Error('the gate is gone')
        },
      },
    })
    await expect(run({ tools, calls, open })).rejects.toThrow('the gate is gone')
    expect(seen).toEqual(['a a', 'b b'])
  })

  test('a request that is not JSON is an error instead of a call that nobody can answer', async () => {
    const request = { at: () => 1 } as never
    const { tools } = traced(
      { type: 'allow' },
      { approval: () => defer({ kind: 'input', request }) },
    )
    const { settled } = await run({ tools })
    expect(settled[0]?.outcome).toMatchObject({
      type: 'error',
      message: expect.stringContaining('request.at is a function') as unknown,
    })
  })
})

test('a call whose outcome the ports know does not happen again', async () => {
  const { log, tools } = traced({ type: 'allow' })
  const open = (): CallPorts => ({ settled: { type: 'done', result: 'paid before' } })
  const { settled } = await run({ tools, open })
  expect(settled).toMatchObject([{ outcome: { type: 'done', result: 'paid before' } }])
  expect(log).toEqual([])
})

test('the ports of an instance are those of each call that it runs, and a batch adds its own', async () => {
  const effects: string[] = []
  const journal = (name: string) => ({
    commit: ({ type }: { readonly type: string }) => void effects.push(`${name} ${type}`),
  })
  const seen: unknown[] = []
  const look: Tool = {
    name: 'look',
    description: '',
    parameters: {},
    run: (_: unknown, context: { readonly own?: unknown; readonly given?: unknown }) => {
      seen.push([context.own, context.given])
      return 'seen'
    },
  }
  const model = scripted([calls('look', {}), says('Done.')])
  const open = (): CallPorts => ({ context: { own: 1 }, journal: journal('instance') })
  const instance = llm({ model, tools: [look], open })
  await instance.generate('go')
  expect(effects).toEqual(['instance call_start', 'instance call_end'])
  const batch = instance.executeTools({
    calls: [{ toolCallId: 'c2', toolName: 'look', arguments: {} }],
    open: () => ({ context: { given: 2 }, journal: journal('batch') }),
  })
  for (let step = await batch.next(); !step.done;) step = await batch.next()
  expect(seen).toEqual([
    [1, undefined],
    [1, 2],
  ])
  expect(effects.slice(2)).toEqual([
    'instance call_start',
    'batch call_start',
    'instance call_end',
    'batch call_end',
  ])
})

import { describe, expectTypeOf, test } from 'vitest'
import type { JsonObject, JsonValue } from '@skein/base'
import { z } from 'zod'
import type { Tool, ToolExecution } from '../contract/tool.ts'
import type { ResultJson, ToolEnd } from '../contract/tool-types.ts'
import { defer } from '../contract/tool.ts'
import type { StreamEvent } from '../contract/event.ts'
import type { Turn } from '../contract/turn.ts'
import { llm, type LLMInstance } from '../llm.ts'
import { says, scripted } from '../testing/index.ts'
import { tool } from './define.ts'

const model = scripted([says('x')])

const weather = tool({
  name: 'weather',
  description: 'The weather of a city.',
  parameters: z.object({ city: z.string(), days: z.string().transform(Number).default(1) }),
  run: ({ city, days }) => ({ city, degrees: days, at: new Date(0) }),
})
const refund = tool({
  name: 'refund',
  description: 'Refunds an order.',
  parameters: z.object({ order: z.number() }),
  run: ({ order }) => (order > 100 ? defer({ kind: 'approval', request: order }) : order),
})
const counter = tool({
  name: 'counter',
  description: 'Counts.',
  parameters: { type: 'object' },
  async *run() {
    yield { count: 1 }
  },
})

describe('toolExecutions', () => {
  test('have the result and the arguments of the tool that toolName names', async () => {
    const turn = await llm({ model, tools: [weather, refund, counter] }).generate('x')
    for (const execution of turn.toolExecutions) {
      if (execution.isError) expectTypeOf(execution.result).toEqualTypeOf<string>()
      else if (execution.toolName === 'weather') {
        expectTypeOf(execution.result.degrees).toEqualTypeOf<number>()
        // Results are JSON (a date is text), arguments are what the tool got (after the transformation).
        expectTypeOf(execution.result.at).toEqualTypeOf<string>()
        expectTypeOf(execution.arguments.city).toEqualTypeOf<string>()
        expectTypeOf(execution.arguments.days).toEqualTypeOf<number>()
        // @ts-expect-error the result has no such member
        void execution.result.degres
      } else if (execution.toolName === 'refund')
        // A deferred call has no execution, so its request is not among the results.
        expectTypeOf(execution.result).toEqualTypeOf<number>()
      else expectTypeOf(execution.result).toEqualTypeOf<{ readonly count: number }>()
      // @ts-expect-error no tool has that name
      if (!execution.isError && execution.toolName === 'wether') throw new Error()
    }
  })

  test('without a look at isError may also be the text of an error', async () => {
    const turn = await llm({ model, tools: [refund, counter] }).generate('x')
    const [first] = turn.toolExecutions
    if (first?.toolName === 'refund') expectTypeOf(first.result).toEqualTypeOf<number | string>()
  })

  test('are open where the tools are', async () => {
    const tools: readonly Tool[] = [weather]
    const turn = await llm({ model, tools }).generate('x')
    expectTypeOf(turn).toEqualTypeOf<Turn>()
    expectTypeOf(turn.toolExecutions).toEqualTypeOf<readonly ToolExecution[]>()
    const untyped = { name: 'x', description: '', parameters: {}, run: (): unknown => 1 }
    const mixed = await llm({ model, tools: [weather, untyped] }).generate('x')
    const [first] = mixed.toolExecutions
    // The untyped tool could have any name.
    if (first && !first.isError && first.toolName === 'weather')
      expectTypeOf(first.result).toBeUnknown()
    expectTypeOf((await llm({ model }).generate('x')).toolExecutions).toEqualTypeOf<
      readonly ToolExecution[]
    >()
  })
})

test('tool_execution_end has the result of the tool that toolName names', async () => {
  const stream = llm({ model, tools: [weather, refund] }).stream('x')
  for await (const event of stream) {
    if (event.type !== 'tool_execution_end' || event.delta.isError) continue
    if (event.delta.toolName === 'weather')
      expectTypeOf(event.delta.result.at).toEqualTypeOf<string>()
    else expectTypeOf(event.delta.result).toEqualTypeOf<number>()
  }
  const turn = await stream.turn
  const done = turn.toolExecutions.filter((one) => !one.isError)
  expectTypeOf(done[0]!.toolName).toEqualTypeOf<'weather' | 'refund'>()
})

test('typed turns, events and instances are the general ones too', async () => {
  const instance = llm({ model, tools: [weather, refund] })
  const general: LLMInstance = instance
  const turn: Turn = await instance.generate('x')
  const show = (event: StreamEvent): unknown => event
  for await (const event of instance.stream('x')) show(event)
  void [general, turn]
  expectTypeOf<StreamEvent>().toEqualTypeOf<StreamEvent>()
  expectTypeOf<
    Extract<StreamEvent, { type: 'tool_execution_end' }>['delta']
  >().toEqualTypeOf<ToolEnd>()
})

test('with() keeps the types, or takes those of new tools', async () => {
  const instance = llm({ model, tools: [refund] })
  const kept = await instance.with({ system: 's' }).generate('x')
  expectTypeOf(kept.toolExecutions[0]!.result).toEqualTypeOf<number | string>()
  const changed = await instance.with({ tools: [counter] }).generate('x')
  expectTypeOf(changed.toolExecutions[0]!.result).toEqualTypeOf<
    { readonly count: number } | string
  >()
})

test('a result is typed as the JSON that it becomes', () => {
  expectTypeOf<ResultJson<Date | bigint>>().toEqualTypeOf<string>()
  expectTypeOf<ResultJson<void>>().toEqualTypeOf<null>()
  expectTypeOf<ResultJson<unknown>>().toEqualTypeOf<unknown>()
  expectTypeOf<ResultJson<Set<Date>>>().toEqualTypeOf<readonly string[]>()
  expectTypeOf<ResultJson<[Date, 1]>>().toEqualTypeOf<readonly [string, 1]>()
  expectTypeOf<ResultJson<Uint8Array>>().toEqualTypeOf<JsonValue>()
  expectTypeOf<ResultJson<{ a?: Date; b: undefined | 1; run(): void }>>().toEqualTypeOf<{
    readonly a?: string
    readonly b: 1 | undefined
  }>()
  expectTypeOf<ResultJson<JsonObject>>().toExtend<JsonObject>()
})

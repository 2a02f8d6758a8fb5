import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { defer, tool } from '@skein/ai'
import { calls, says, scripted } from '@skein/ai/testing'
import { agent, AgentState, subagent } from '../index.ts'
import { loop, react } from '../strategies/index.ts'

const made = { cents: 500, all: true }
let transforms = 0
const args = z.object({
  cents: z.number().transform((n) => {
    transforms++
    return n * 100
  }),
  all: z.boolean().default(true),
})

function payTool(parameters: z.ZodObject = args) {
  const seen: unknown[] = []
  transforms = 0
  const pay = tool({
    name: 'pay',
    description: 'Pays.',
    parameters: parameters as typeof args,
    approval: (given) => {
      seen.push(['approval', given])
      return defer({ kind: 'approval', request: 'May I?' })
    },
    run: (given) => {
      seen.push(['run', given])
      return 'paid'
    },
  })
  return { pay, seen }
}

function stored(state: AgentState): AgentState {
  return AgentState.fromJSON(JSON.parse(JSON.stringify(state)))
}

describe('an interrupt of a tool with a schema', () => {
  test.each([loop(), react()])(
    'shows what will run, and that runs once after a restart ($name)',
    async (execution) => {
      const { pay, seen } = payTool()
      const script = [says('Think.'), calls('pay', { cents: 5 }), says('Done.')]
      const model = scripted(execution.name === 'react' ? script : script.slice(1))
      const first = await agent({ model, tools: [pay], execution }).generate(
        'Pay.',
        AgentState.initial(),
      )
      expect(first.interrupts).toMatchObject([{ request: 'May I?', arguments: made }])
      const state = stored(first.state)
      expect(state.interrupts).toEqual(first.interrupts)

      const rest = execution.name === 'react' ? [says('Think.'), says('Done.')] : [says('Done.')]
      const again = agent({ model: scripted(rest), tools: [pay], execution })
      const ended = await again.resume(state, { [state.interrupts[0]!.id]: { type: 'approve' } })
      expect(ended.stopReason).toBe('complete')
      expect(seen).toEqual([
        ['approval', made],
        ['run', made],
      ])
      expect(transforms).toBe(1)
      // What the model wrote stays as it is.
      expect(JSON.stringify(ended.state.messages)).toContain('{"cents":5}')
    },
  )

  test('is asked again if another definition makes other arguments', async () => {
    const { pay } = payTool()
    const model = scripted([calls('pay', { cents: 5 })])
    const { state } = await agent({ model, tools: [pay] }).generate('Pay.', AgentState.initial())
    const other = payTool(z.object({ cents: z.number(), all: z.boolean().default(false) }))
    const changed = agent({ model: scripted([says('Done.')]), tools: [other.pay] })
    const answers = { [state.interrupts[0]!.id]: { type: 'approve' } } as const
    const asked = await changed.resume(stored(state), answers)
    expect(other.seen).toEqual([['approval', { cents: 5, all: false }]])
    expect(asked.interrupts).toMatchObject([{ arguments: { cents: 5, all: false } }])
    const id = asked.interrupts![0]!.id
    const ended = await changed.resume(stored(asked.state), { [id]: { type: 'approve' } })
    expect(ended.stopReason).toBe('complete')
    expect(other.seen.at(-1)).toEqual(['run', { cents: 5, all: false }])
  })

  test('of a state that was saved without parsed arguments is asked again if they differ', async () => {
    const { pay, seen } = payTool()
    const model = scripted([calls('pay', { cents: 5 })])
    const { state } = await agent({ model, tools: [pay] }).generate('Pay.', AgentState.initial())
    const json = JSON.parse(JSON.stringify(state)) as {
      suspension: { deferred: { parsed?: unknown }[] }
    }
    delete json.suspension.deferred[0]!.parsed
    const old = AgentState.fromJSON(json as never)
    const later = agent({ model: scripted([says('Done.')]), tools: [pay] })
    const asked = await later.resume(old, { [old.interrupts[0]!.id]: { type: 'approve' } })
    expect(asked.interrupts).toMatchObject([{ arguments: made }])
    expect(seen).toEqual([
      ['approval', made],
      ['approval', made],
    ])
  })

  test('inside a sub-agent shows what will run, and that runs once', async () => {
    const { pay, seen } = payTool()
    const inner = agent({
      model: scripted([calls('pay', { cents: 5 }), says('Paid.')]),
      tools: [pay],
    })
    const kid = subagent({
      name: 'kid',
      description: 'Pays.',
      parameters: z.object({ task: z.string().default('pay') }) as never,
      agent: inner,
      prompt: ({ task }: { task?: string }) => task ?? 'no task',
    })
    const top = agent({ model: scripted([calls('kid', {}), says('Done.')]), tools: [kid] })
    const first = await top.generate('Go.', AgentState.initial())
    expect(first.interrupts).toMatchObject([{ path: ['kid'], arguments: made }])
    const state = stored(first.state)
    const ended = await top.resume(state, { [state.interrupts[0]!.id]: { type: 'approve' } })
    expect(ended.stopReason).toBe('complete')
    expect(seen.at(-1)).toEqual(['run', made])
    expect(transforms).toBe(1)
  })
})

import { z } from 'zod'
import { calls, says, scripted, type ScriptPart } from '@skein/ai/testing'
import {
  asSubagent,
  defineAgent,
  definePrompt,
  defineTool,
  type AgentDefinition,
  type EmbeddedRuntime,
} from '@skein/runtime'

/** An agent whose refunds wait for a person, and the amounts that it has paid so far. */
export interface RefundDesk {
  readonly agent: AgentDefinition
  /** An agent that passes every message to a child, which makes the refunds. */
  readonly front: AgentDefinition
  readonly paid: readonly number[]
}

/** A desk that pays 25 for "refund for good", which cannot be undone, and 5 for any other "refund". */
export function refundDesk(): RefundDesk {
  const paid: number[] = []
  const args = z.object({ order: z.string(), amount: z.number() })
  const pay = (_: unknown, { amount }: { readonly amount: number }): string => {
    paid.push(amount)
    return `Paid ${amount}.`
  }
  const undo = defineTool({
    name: 'undo_refund',
    description: 'Takes a refund back.',
    args: z.object({ order: z.string() }),
    risk: 'write_low_risk',
    execute: (_, { order }) => `Took the refund of ${order} back.`,
  })
  const refund = defineTool({
    name: 'refund',
    description: 'Pays money back.',
    args,
    risk: 'write_high_risk',
    rollback: ({ order }) => ({ type: 'tool_call', target: 'undo_refund', payload: { order } }),
    execute: pay,
  })
  const refundForGood = defineTool({
    name: 'refund_for_good',
    description: 'Pays money back, for good.',
    args,
    risk: 'write_high_risk',
    rollback: 'impossible',
    execute: pay,
  })
  const prompt = definePrompt({
    name: 'desk',
    prompt: 'Help.',
    model: scripted(({ messages }): ScriptPart | readonly ScriptPart[] => {
      const last = messages.at(-1)
      if (last?.type !== 'user') return says('That is done.')
      if (last.text.includes('for good'))
        return calls('refund_for_good', { order: 'O-7', amount: 25 })
      if (last.text.includes('refund')) return calls('refund', { order: 'O-7', amount: 5 })
      return says(`You said: ${last.text}`)
    }),
    tools: [refund, refundForGood, undo],
  })
  const agent = defineAgent({ name: 'desk', sideA: { prompt } })
  const back = asSubagent(
    defineAgent({ name: 'back', toolDescription: 'Makes refunds.', sideA: { prompt } }),
  )
  const front = defineAgent({
    name: 'front',
    sideA: {
      prompt: definePrompt({
        name: 'front',
        prompt: 'Pass it on.',
        model: scripted(({ messages }) => {
          const last = messages.at(-1)
          return last?.type === 'user' ? calls('back', { message: last.text }) : says('Passed on.')
        }),
        tools: [back],
      }),
    },
  })
  return { agent, front, paid }
}

/** Starts a thread whose call, or whose child's call, waits for a person; returns the id of the thread. */
export async function waitingThread(
  runtime: EmbeddedRuntime,
  message: string,
  agent: 'desk' | 'front' = 'desk',
): Promise<string> {
  const { id } = await runtime.threads.create({ agent, message })
  await runtime.threads.settled(id)
  return id
}

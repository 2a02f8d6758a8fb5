import type { LLMRequest, Message } from '@skein/ai'
import { calls, fails, says, scripted, type ScriptPart } from '@skein/ai/testing'
import { z } from 'zod'
import { defineAgent } from '../../src/definitions/define-agent.ts'
import { defineEffect } from '../../src/definitions/define-effect.ts'
import { definePrompt } from '../../src/definitions/define.ts'
import { defineTool } from '../../src/definitions/define-tool.ts'
import { type RegistryOptions } from '../../src/definitions/load/registry.ts'

/** What happens outside of the threads. */
export interface World {
  /** Whether models refuse to answer for now. */
  isDown?: boolean
  /** Told of each call and of models that think; what it answers is waited for. */
  during?: (what: string) => Promise<void>
  /** Effects of calls, in order. */
  readonly done: string[]
}

/** What the runtime tells of children stands after all else. */
function isRegistry({ type, text }: Message): boolean {
  return type === 'user' && /^(\[runtime\] )?Subagents of this thread:/.test(text)
}

/**
 * The agents of the databases in this folder. They do what they are told to, word for word, and remember
 * nothing: whatever they know of the past comes from the log. Names, tools and settings stay as they are,
 * or the threads in those databases lose them.
 */
export function parkedAgents(world: World): RegistryOptions {
  const acts = async (what: string): Promise<string> => {
    await world.during?.(what)
    world.done.push(what)
    return what
  }
  const obeys = async ({ messages }: LLMRequest): Promise<ScriptPart> => {
    if (world.isDown) return fails({ code: 'RATE_LIMITED' })
    const last = messages.findLast((message) => !isRegistry(message))!
    if (last.type === 'tool_result')
      return says(`It came to: ${last.results.map(({ result }) => String(result)).join(', ')}`)
    const [, tool, args] = /^call (\w+) (.*)$/s.exec(last.text) ?? []
    if (tool !== undefined && args !== undefined)
      return calls(tool, JSON.parse(args) as Record<string, string>)
    if (last.text === 'think') await world.during?.('think')
    return says(`You said: ${last.text}`)
  }
  /** As the other, but reports what came of it. A child that began by itself asks a person. */
  const helps = async (request: LLMRequest): Promise<ScriptPart> => {
    const last = request.messages.at(-1)!
    if (last.type === 'tool_result')
      return calls('finish', { summary: String(last.results[0]?.result) })
    if (last.text === 'Begin.') return calls('ask_person', { question: 'Shall we?' })
    return obeys(request)
  }

  const refund = defineTool({
    name: 'refund',
    description: 'Pays back.',
    args: z.object({ order: z.string() }),
    risk: 'write_high_risk',
    rollback: ({ order }) => ({ type: 'tool_call', target: 'charge', payload: { order } }),
    execute: (_, { order }) => acts(`refund ${order}`),
  })
  const charge = defineTool({
    name: 'charge',
    description: 'Charges.',
    args: z.object({ order: z.string() }),
    risk: 'write_low_risk',
    execute: (_, { order }) => acts(`charge ${order}`),
  })
  const askPerson = defineTool({
    name: 'ask_person',
    description: 'Asks whoever sits at the client.',
    args: z.object({ question: z.string() }),
    risk: 'read_only',
  })
  const look = defineTool({
    name: 'look',
    description: 'Looks.',
    args: z.object({ at: z.string() }),
    risk: 'read_only',
    execute: (_, { at }) => acts(`look ${at}`),
  })
  const note = defineTool({
    name: 'note',
    description: 'Notes.',
    args: z.object({ text: z.string() }),
    risk: 'write_low_risk',
    execute: async (state, { text }) => {
      await state.writeFile('/note.txt', text)
      state.setValue('noted', text)
      return acts(`note ${text}`)
    },
  })
  const giveUp = defineTool({
    name: 'give_up',
    description: 'Gives up.',
    args: z.object({ why: z.string() }),
    risk: 'read_only',
    execute: (_, { why }) => why,
  })
  const countKey = defineTool({
    name: 'count_key',
    description: 'Counts the letters of the key.',
    args: z.object({}),
    risk: 'read_only',
    execute: (state) => `${state.env('DOOR_KEY').length} letters`,
  })
  const finish = defineTool({
    name: 'finish',
    description: 'Reports.',
    args: z.object({ summary: z.string() }),
    risk: 'read_only',
    execute: () => 'reported',
  })

  const checker = definePrompt({ name: 'checker', prompt: 'Check.', model: scripted([]) })
  const helper = defineAgent({
    name: 'helper',
    type: 'dual_ai',
    maxSessionTurns: 10,
    exposeAsTool: true,
    toolDescription: 'Helps.',
    sideA: {
      prompt: definePrompt({
        name: 'helper',
        prompt: 'Help.',
        model: scripted(helps),
        tools: [refund, askPerson, look, finish],
      }),
      sessionStop: { name: finish, messageProperty: 'summary' },
    },
    sideB: { prompt: checker },
  })
  const courier = defineAgent({
    name: 'courier',
    type: 'dual_ai',
    maxSessionTurns: 10,
    exposeAsTool: true,
    toolDescription: 'Carries.',
    sideA: {
      prompt: definePrompt({
        name: 'courier',
        prompt: 'Carry.',
        model: scripted(helps),
        tools: [countKey, finish],
        variables: [{ name: 'DOOR_KEY', type: 'secret', required: true, scoped: true }],
      }),
      sessionStop: { name: finish, messageProperty: 'summary' },
    },
    sideB: { prompt: checker },
  })
  const clerk = defineAgent({
    name: 'clerk',
    sideA: {
      prompt: definePrompt({
        name: 'clerk',
        prompt: 'Do as you are told.',
        model: scripted(obeys),
        tools: [
          refund,
          askPerson,
          look,
          note,
          giveUp,
          helper,
          { name: courier, blocking: false, resumable: {} },
        ],
      }),
      sessionFail: { name: giveUp, messageProperty: 'why' },
    },
  })
  const porter = defineAgent({
    name: 'porter',
    sideA: {
      prompt: definePrompt({
        name: 'porter',
        prompt: 'Open doors.',
        model: scripted(obeys),
        tools: [countKey],
        variables: [{ name: 'DOOR_KEY', type: 'secret' }],
      }),
    },
  })
  const keeper = defineAgent({
    name: 'keeper',
    sideA: {
      prompt: definePrompt({
        name: 'keeper',
        prompt: 'Keep.',
        model: scripted(obeys),
        tools: [{ name: helper, immediate: true }],
      }),
    },
  })
  const remind = defineEffect({
    name: 'remind',
    args: z.object({ of: z.string() }),
    execute: (state, { of }) => state.queueMessage({ content: `Remember the ${of}.` }),
  })
  return { agents: [clerk, porter, keeper], tools: [charge], effects: [remind] }
}

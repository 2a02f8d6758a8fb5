import {
  defineAgent,
  defineEffect,
  defineHook,
  definePrompt,
  type AgentDefinition,
  type EffectDefinition,
  type HookDefinition,
  type PromptTool,
  type SideConfig,
  type ToolDefinition,
} from '@skein/runtime'
import { z } from 'zod'
import type { Lane } from '../../src/testing/simulation.ts'
import { simulatedEffects } from './laws-effects.ts'
import { countTool } from './laws-limits.ts'
import { simulatedModel, type Temper } from './simulated-model.ts'
import { simulatedTools } from './simulated-tools.ts'
import type { World } from './world.ts'

export interface SimulatedAgents {
  readonly agents: readonly AgentDefinition[]
  readonly effects: readonly EffectDefinition[]
  /** Tools that no prompt lists. */
  readonly tools: readonly ToolDefinition[]
}

/** The agents of a run, for one runtime: people, pairs, children of every kind, handoffs, gates. */
export function simulatedAgents(world: World, lane: Lane): SimulatedAgents {
  const tools = simulatedTools(world, lane)
  const hooks = simulatedHooks(world)
  const count = countTool(world, lane)

  const side = (
    name: string,
    listed: readonly PromptTool[],
    temper: Temper = {},
    more: Partial<SideConfig> & { readonly compacts?: boolean } = {},
  ): SideConfig => {
    const { compacts, ...rest } = more
    return {
      maxSteps: 7,
      ...rest,
      prompt: definePrompt({
        name,
        prompt: `You are ${name}.`,
        model: simulatedModel(world, lane, name, temper),
        tools: world.plan.hasLimits ? [...listed, count] : listed,
        hooks: name === 'desk_a' || name === 'crew_a' ? hooks : hooks.slice(0, 1),
        parallelToolCalls: name.length % 2 === 0,
        ...(temper.isFormal && { output: z.object({ ok: z.boolean() }) }),
        ...(compacts && { compaction: { maxTokens: 40, keepMessages: 2 } }),
      }),
    }
  }
  const pair = (
    name: string,
    listed: readonly PromptTool[],
    more: Partial<AgentDefinition> = {},
  ): AgentDefinition =>
    defineAgent({
      name,
      type: 'dual_ai',
      maxSessionTurns: 6,
      exposeAsTool: true,
      toolDescription: name,
      sideA: side(`${name}_a`, listed, { calls: 0.4 }),
      sideB: side(
        `${name}_b`,
        [tools.finish, tools.giveUp, tools.report],
        { ends: 'finish', givesUp: 'give_up' },
        {
          sessionStop: { name: 'finish', messageProperty: 'text', attachmentsProperty: 'files' },
          sessionFail: { name: 'give_up', messageProperty: 'why' },
          sessionStatus: { name: 'report', messageProperty: 'text' },
        },
      ),
      ...more,
    })

  const leaf = pair('leaf', [tools.look, tools.send])
  const crew = pair('crew', [tools.send, tools.leak, { name: leaf }])
  const runner = pair('runner', [tools.put, { name: leaf, blocking: false }])
  const expert = pair('expert', [tools.look, tools.ask])
  const scout = pair('scout', [tools.plan, tools.send])
  const mute = pair('mute', [tools.plan, tools.look])
  const early = pair('early', [tools.look])
  const late = pair('late', [tools.put, tools.leak])
  const needy = needyPair(pair, side, tools)
  // Children of a parent whose result is judged: one that is judged itself, and one that is not.
  const teller = pair('teller', [tools.pay, tools.send, { name: leaf }])
  const clerks = pair('clerks', [tools.pay, tools.ship], {
    taskClass: { name: 'calm', verifiers: [], needs: [], acceptInDoubt: true },
  })
  const clerk = defineAgent({
    name: 'clerk',
    exposeAsTool: true,
    toolDescription: 'clerk',
    // The clerk hands back, so that handoffs could go round.
    sideA: side('clerk_a', [tools.look, tools.send, 'desk']),
  })
  const children: PromptTool[] = [
    { name: crew },
    { name: runner, blocking: false },
    { name: expert, resumable: { maxInstances: 2 } },
    { name: scout, blocking: false, resumable: { receivesMessages: 'side_b' } },
    { name: mute, blocking: false, resumable: { parentCommunication: 'explicit' } },
  ]
  const agents = [
    defineAgent({
      name: 'desk',
      exposeAsTool: true,
      toolDescription: 'desk',
      sideA: side('desk_a', [...children, tools.look, tools.send, tools.leak, clerk, tools.plan]),
    }),
    defineAgent({
      name: 'boss',
      sideA: side('boss_a', [
        tools.look,
        { name: early, immediate: true },
        { name: late, immediate: { nameEnv: 'MOOD' }, blocking: false, resumable: {} },
        { name: needy, initUserMessageProperty: 'message' },
      ]),
    }),
    pair('duo', [tools.look, tools.send, tools.ask, { name: runner, blocking: false }]),
    // A program answers instead of a model.
    defineAgent({ name: 'bot', sideA: { handler: () => 'Noted.' } }),
    defineAgent({
      name: 'guarded',
      sideA: side('guarded_a', [tools.look, tools.pay, tools.send, tools.ship]),
      taskClass: {
        name: 'careful',
        verifiers: [],
        needs: [{ type: 'tool_result', source: 'look' }],
        repair: { max: 2 },
        acceptInDoubt: true,
      },
    }),
    defineAgent({
      name: 'steward',
      sideA: side('steward_a', [tools.look, tools.put, { name: teller }, { name: clerks }]),
      taskClass: {
        name: 'watchful',
        verifiers: [],
        needs: [{ type: 'tool_result', source: 'look' }],
        repair: { max: 1 },
        acceptInDoubt: true,
      },
    }),
    defineAgent({
      name: 'talker',
      sideA: side(
        'talker_a',
        [tools.look, tools.plan, tools.leak, tools.ask],
        {},
        { compacts: true },
      ),
    }),
    defineAgent({
      name: 'former',
      sideA: side('former_a', [tools.look, tools.put], { isFormal: true }),
    }),
    defineAgent({
      name: 'treasurer',
      sideA: side('treasurer_a', [tools.pay, tools.ship, tools.send, tools.put, { name: crew }]),
    }),
    clerk,
  ]
  const roots: readonly string[] = world.plan.roots
  const needed = agents.filter(({ name }) => roots.includes(name))
  return {
    agents: needed,
    effects: [tick(world, lane), ...simulatedEffects(world, lane)],
    tools: [tools.refund],
  }
}

/** A child that cannot begin before somebody gives it a key. */
function needyPair(
  pair: (
    name: string,
    tools: readonly PromptTool[],
    more?: Partial<AgentDefinition>,
  ) => AgentDefinition,
  side: (name: string, tools: readonly PromptTool[], temper?: Temper) => SideConfig,
  tools: ReturnType<typeof simulatedTools>,
): AgentDefinition {
  const base = side('needy_a', [tools.look])
  const prompt = base.prompt as ReturnType<typeof definePrompt>
  return pair('needy', [], {
    sideA: {
      ...base,
      prompt: definePrompt({
        ...prompt,
        variables: [{ name: 'NEEDED', type: 'secret', required: true, scoped: true }],
      }),
    },
  })
}

function simulatedHooks({ chance }: World): HookDefinition[] {
  return [
    defineHook({
      id: 'counts',
      hook: 'after_tool_call_success',
      execute(state) {
        if (chance.happens(0.05)) throw new Error('the hook is tired')
        if (chance.happens(0.1)) state.setValue('counted', chance.below(100))
      },
    }),
    defineHook({
      id: 'greets',
      hook: 'after_thread_created',
      execute(state) {
        if (chance.happens(0.3)) state.setValue('greeted', true)
      },
    }),
  ] as HookDefinition[]
}

function tick({ chance, time }: World, lane: Lane): EffectDefinition {
  return defineEffect({
    name: 'tick',
    retry: { attempts: 3, backoffMs: time.scaled(1_000) },
    async execute(state) {
      await lane.turn('effect tick')
      if (chance.happens(0.3)) throw new Error('the effect failed')
      if (chance.happens(0.5)) state.queueMessage({ content: `tick ${chance.below(1000)}` })
    },
  })
}

import { appendFileSync, readFileSync } from 'node:fs'
import type { LLMRequest } from '@skein/ai'
import { calls, says, scripted, waits, type ScriptPart } from '@skein/ai/testing'
import {
  defineAgent,
  defineEffect,
  definePrompt,
  defineTool,
  type AgentDefinition,
  type EffectDefinition,
  type PromptTool,
  type ToolDefinition,
  type WaitingItem,
} from '@skein/runtime'
import { z } from 'zod'

const args = z.looseObject({ ref: z.string() })

/** What was done outside: one line per effect in a file that no kill can take back. */
export class EffectsFile {
  readonly #path: string

  constructor(path: string) {
    this.#path = path
  }

  note(tool: string, ref: string): void {
    appendFileSync(this.#path, `${tool} ${ref}\n`)
  }

  lines(): string[] {
    return readFileSync(this.#path, 'utf8').split('\n').slice(0, -1)
  }
}

/** One action per message, by its number; every action has a reference that is used once. */
export function killAgents(
  effects: EffectsFile,
  thinkMs: () => number,
  /** How long a call takes before its effect, and again after it. */
  toolMs: () => number = () => thinkMs() / 4,
): { readonly agents: AgentDefinition[]; readonly effects: EffectDefinition[] } {
  const pause = () => new Promise((resolve) => setTimeout(resolve, toolMs()))
  const writer = (name: string, more: object = {}): ToolDefinition =>
    defineTool({
      name,
      description: name,
      risk: 'write_low_risk',
      ...more,
      args,
      async execute(_, { ref }) {
        await pause()
        effects.note(name, ref)
        await pause()
        return `${name} ${ref}`
      },
    })
  const send = writer('send')
  const put = writer('put', { idempotent: true })
  const undo = writer('undo', { idempotent: true })
  const pay = writer('pay', {
    risk: 'write_high_risk',
    rollback: (payload: object) => ({ type: 'tool_call', target: 'undo', payload }),
  })
  const remind = defineTool({
    name: 'remind',
    description: 'bills later',
    risk: 'write_low_risk',
    idempotent: true,
    args,
    execute(state, { ref }) {
      state.scheduleEffect('bill', { ref }, 200 + thinkMs())
      return `remind ${ref}`
    },
  })
  const bill = defineEffect({
    name: 'bill',
    args,
    async execute(_, { ref }) {
      await pause()
      effects.note('bill', ref)
      await pause()
    },
  })
  const finish = defineTool({
    name: 'finish',
    description: 'ends',
    risk: 'read_only',
    args: z.looseObject({}),
    execute: () => 'ended',
  })

  const side = (
    name: string,
    tools: readonly PromptTool[],
    answer: (request: LLMRequest) => ScriptPart | ScriptPart[],
  ) => ({
    prompt: definePrompt({
      name,
      prompt: name,
      tools,
      model: scripted((request) => [waits(thinkMs()), ...[answer(request)].flat()], {
        modelId: name,
      }),
    }),
  })
  const pair = (name: string): AgentDefinition =>
    defineAgent({
      name,
      type: 'dual_ai',
      exposeAsTool: true,
      toolDescription: name,
      sideA: side(`${name}_a`, [send], (request) => {
        const [ref] = refsOf(request)
        return called(request).size > 0
          ? says(`did ${ref}`)
          : calls('send', { ref: `${name}-${ref}` })
      }),
      sideB: {
        ...side(`${name}_b`, [finish], (request) =>
          calls('finish', { text: `result of ${refsOf(request)[0]}` }),
        ),
        sessionStop: { name: 'finish', messageProperty: 'text' },
      },
    })
  const desk = defineAgent({
    name: 'desk',
    sideA: side(
      'desk_a',
      [send, put, pay, remind, { name: pair('crew') }, { name: pair('runner'), blocking: false }],
      (request) => {
        const open = refsOf(request).filter((ref) => actionOf(ref) && !called(request).has(ref))
        return open.length === 0
          ? says('ok')
          : open.slice(0, 2).map((ref) => calls(actionOf(ref)!, { ref, message: ref }))
      },
    ),
  })
  const keeper = defineAgent({ name: 'keeper', sideA: side('keeper_a', [undo], () => says('ok')) })
  return { agents: [desk, keeper], effects: [bill] }
}

/** Decides what waits for a person, who looks up whether a call in doubt has happened. */
export async function decide(
  inbox: {
    approve(item: Decision): Promise<unknown>
    settle(item: Decision, found: 'applied' | 'absent'): Promise<unknown>
  },
  { threadId, interruptId, kind, question }: WaitingItem,
  effects: EffectsFile,
): Promise<void> {
  const item = { threadId, interruptId, by: 'ann' }
  const asked = question as { tool?: string; arguments?: { ref?: string } } | undefined
  const isThere = effects.lines().includes(`${asked?.tool} ${asked?.arguments?.ref}`)
  await (kind === 'approval'
    ? inbox.approve(item)
    : inbox.settle(item, isThere ? 'applied' : 'absent'))
}

interface Decision {
  readonly threadId: string
  readonly interruptId: string
  readonly by: string
}

const ACTIONS = [undefined, 'send', 'crew', 'runner', 'put', 'pay', 'remind']

/** The tool that a message asks for; every seventh asks for none. */
export function actionOf(ref: string): string | undefined {
  return ACTIONS[Number(ref.split('-')[2]) % ACTIONS.length]
}

/** References that people have named, in order. */
function refsOf({ messages }: LLMRequest): string[] {
  const said = messages.flatMap((message) => (message.type === 'user' ? message.text : []))
  return [...new Set(said.flatMap((text) => text.match(/m-\d+-\d+/g) ?? []))]
}

function called({ messages }: LLMRequest): Set<string> {
  const made = messages.flatMap((message) =>
    message.type === 'assistant' ? (message.toolCalls ?? []) : [],
  )
  return new Set(made.map((call) => String(call.arguments['ref'])))
}

import { branded } from './agent-brand.ts'
import type { AgentDefinition, SideConfig, SimpleAgent } from './agent-definition.ts'
import { definePrompt } from './define.ts'
import { DefinitionError } from './definition-error.ts'
import { frozenDefinition } from './frozen-definition.ts'
import type { PromptDefinition } from './prompt-definition.ts'
import { RuntimeError } from '../contract/error.ts'

/**
 * Defines an agent: a model that talks with a person. With `sideA` in place of `instructions` and `model` it may have
 * two sides that talk with each other, or a prompt of its own (`definePrompt`).
 *
 *     const support = defineAgent({
 *       name: 'support',
 *       instructions: 'You help customers of a book shop.',
 *       model: anthropic('claude-sonnet-4-5'),
 *       tools: [findOrder],
 *     })
 */
export function defineAgent<Data = unknown>(agent: AgentDeclaration<Data>): AgentDefinition<Data> {
  const { sideA, instructions } = agent as {
    readonly [Key in keyof AgentDeclaration]?: unknown
  } & {
    readonly instructions?: unknown
  }
  if (sideA !== undefined && instructions !== undefined) throw twoForms(agent.name)
  const full = sideA === undefined ? expanded(agent as SimpleAgent<Data>) : agent
  const { taskClass, ...rest } = full
  const copy = Object.fromEntries(Object.entries(rest).map(([k, v]) => [k, frozenDefinition(v)]))
  return branded(taskClass === undefined ? copy : { ...copy, taskClass })
}

/** What `defineAgent` takes: an agent with one prompt (`instructions`, `model`, …), or the sides of one (`sideA`, …). */
export type AgentDeclaration<Data = unknown> =
  | SimpleAgent<Data>
  | (Omit<AgentDefinition<Data>, 'sideA'> & {
      readonly sideA: SideConfig<Data>
      readonly instructions?: undefined
    })

/** The fields of a simple agent that belong to its prompt. The type ensures that none is missing. */
const promptFields: {
  readonly [Key in keyof Omit<SimpleAgent, keyof AgentDefinition | 'maxSteps' | 'label'>]-?: true
} = {
  instructions: true,
  model: true,
  tools: true,
  output: true,
  requiredSchema: true,
  includeChat: true,
  includePastTools: true,
  parallelToolCalls: true,
  toolChoice: true,
  variables: true,
  reasoning: true,
  recentImageThreshold: true,
  providerOptions: true,
  compaction: true,
}

/**
 * Makes side A and its prompt of the fields of a simple agent (Standard Agents §1). Fields that no agent has stay with
 * the agent, so that loading reports them, together with all other problems.
 */
function expanded(agent: SimpleAgent): AgentDefinition {
  const { maxSteps, label, ...fields } = agent
  const entries = Object.entries(fields)
  const isOfPrompt = ([key]: [string, unknown]): boolean => Object.hasOwn(promptFields, key)
  const own = Object.fromEntries(entries.filter((entry) => !isOfPrompt(entry)))
  const ofPrompt = Object.fromEntries(entries.filter(isOfPrompt))
  // An agent without any field of a prompt lacks both forms; loading says so.
  if (Object.keys(ofPrompt).length === 0) return agent as unknown as AgentDefinition
  const { instructions, ...options } = ofPrompt
  const subject = `agent "${String(agent.name)}"`
  const missing = (['instructions', 'model'] as const).filter((key) => agent[key] === undefined)
  if (missing.length > 0)
    throw new DefinitionError(
      missing.map((field) => ({ subject, field, message: REQUIRED_FIELDS[field] })),
    )
  const prompt = definePrompt({
    name: agent.name,
    prompt: instructions,
    ...options,
  } as Omit<PromptDefinition, 'kind'>) // loading checks the fields
  const side = Object.entries({ prompt, label, maxSteps }).filter(
    ([, value]) => value !== undefined,
  )
  return { ...own, sideA: Object.fromEntries(side) } as unknown as AgentDefinition
}

const REQUIRED_FIELDS = {
  instructions:
    'is required: the text of the prompt. An agent with sideA has a prompt of its own instead',
  model: "is required, e.g. anthropic('claude-sonnet-4-5') of @skein/ai/anthropic",
} as const

function twoForms(name: unknown): DefinitionError {
  const message =
    'must be left out, because sideA is given; sideA has a prompt with a text of its own, made with definePrompt'
  return new DefinitionError([
    { subject: `agent "${String(name)}"`, field: 'instructions', message },
  ])
}

/**
 * Returns the agent with another model, e.g. a scripted one in a test. `sideB` is the model of side B of an agent whose
 * two sides are models. Sub-agents keep their models.
 *
 *     const runtime = await createRuntime({ agents: [withModel(support, scripted([says('Hello.')]))] })
 */
export function withModel<Data>(
  agent: AgentDefinition<Data>,
  model: PromptDefinition['model'],
  { sideB }: { readonly sideB?: PromptDefinition['model'] } = {},
): AgentDefinition<Data> {
  const change = (field: 'sideA' | 'sideB', chosen: PromptDefinition['model']): SideConfig => {
    const side = agent[field]
    const { prompt, agent: other } = side ?? {}
    if (typeof prompt === 'object')
      return { ...side, prompt: definePrompt({ ...prompt, model: chosen }) }
    const name = typeof prompt === 'string' ? `names the prompt "${prompt}"` : 'has no prompt'
    throw new RuntimeError(`The ${field} of the agent "${agent.name}" ${name}.`, {
      code: 'INPUT_INVALID',
      hint: other
        ? 'Give the agent() of the side another model: agent({ ...other, model }).'
        : 'withModel changes a prompt that the side has as an object: sideA: { prompt: definePrompt({ … }) }.',
    })
  }
  const sideA = change('sideA', model)
  const copy = { ...agent, sideA, ...(sideB && { sideB: change('sideB', sideB) }) }
  return branded(frozenDefinition(copy))
}

import type { LLMInstance, LLMOptions, Tool, Turn } from '@skein/ai'
import type { JsonSchema } from '@skein/base'
import { invalidUse } from '../contract/agent-error.ts'

/** A model that makes plans, and a function that finds the plan in its answer. */
export interface Planner {
  readonly llm: LLMInstance
  /** Returns the data of the plan in an answer. */
  readonly read: (turn: Turn) => unknown
}

const SUBMIT = 'submit_plan'

/**
 * Makes a planner for a model: with structured output if the vendor supports it, otherwise with a private
 * tool. An opaque model (one that only has `generate` and `stream`) does not report its capabilities, so the
 * plan is read from the JSON in its text.
 */
export function plannerOf(llm: LLMInstance, schema: JsonSchema): Planner {
  if (typeof llm.with !== 'function') return { llm, read: readText }
  const { structuredOutput, tools } = llm.capabilities
  if (structuredOutput)
    return { llm: bareModel(llm, { structure: schema }), read: ({ data }) => data }
  if (!tools)
    throw invalidUse(
      `plan() needs structured output or tools, and "${llm.model.provider}" has neither.`,
      'Use loop() or react() with this model.',
    )
  const submit: Tool = {
    name: SUBMIT,
    description: 'Submits the plan. Call it exactly once.',
    parameters: schema,
    run: () => undefined,
  }
  return {
    llm: bareModel(llm, { tools: [submit] }),
    read: ({ response }) =>
      response.toolCalls?.find(({ toolName }) => toolName === SUBMIT)?.arguments,
  }
}

/**
 * Returns the model without tools and structure, or with different ones. A model with only `generate` and
 * `stream` is returned unchanged.
 */
export function bareModel(
  llm: LLMInstance,
  changes: Pick<LLMOptions, 'tools' | 'structure'> = {},
): LLMInstance {
  if (typeof llm.with !== 'function') return llm
  const none = {
    tools: [],
    toolChoice: undefined,
    structure: undefined,
    validate: false,
    repair: undefined,
  }
  return llm.with({ ...none, ...changes })
}

/**
 * Returns the structured data of an answer; without any, parses its text from the first bracket to the last
 * as JSON.
 */
function readText({ response, data }: Turn): unknown {
  if (data !== undefined) return data
  const { text } = response
  const start = text.search(/[[{]/)
  const end = Math.max(text.lastIndexOf('}'), text.lastIndexOf(']'))
  if (start < 0 || end < start) return undefined
  try {
    return JSON.parse(text.slice(start, end + 1))
  } catch {
    return undefined // the brackets were part of ordinary text; the model is asked again for a plan
  }
}

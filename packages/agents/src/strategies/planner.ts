import { type JsonSchema } from '@skein/base'
import type { LLMInstance, Tool, Turn } from '@skein/ai'
import { invalidRequest } from '../agent-error.ts'
import { bareModel } from './bare-model.ts'

/** How a model gives a plan (A9). */
export interface Planner {
  readonly llm: LLMInstance
  /** The plan's data in an answer. */
  readonly read: (turn: Turn) => unknown
}

/** By structured output; else by a private tool; a model that tells nothing of itself by its text. */
export function plannerOf(llm: LLMInstance, schema: JsonSchema): Planner {
  if (typeof llm.with !== 'function') return { llm, read: readText }
  const { structuredOutput, tools } = llm.capabilities
  if (structuredOutput) return { llm: bareModel(llm, { structure: schema }), read: readData }
  if (tools) return { llm: bareModel(llm, { tools: [submitPlan(schema)] }), read: readCall }
  throw invalidRequest(
    `plan() needs structured output or tools, and "${llm.model.provider}" has neither.`,
    'Use loop() or react() with this model.',
  )
}

const SUBMIT = 'submit_plan'

function submitPlan(parameters: JsonSchema): Tool {
  const description = 'Submits the plan. Call it exactly once.'
  return { name: SUBMIT, description, parameters, run: () => undefined }
}

function readData({ data }: Turn): unknown {
  return data
}

function readCall({ response }: Turn): unknown {
  return response.toolCalls?.find(({ toolName }) => toolName === SUBMIT)?.arguments
}

/** The first JSON value that the text holds from a bracket on to its end. */
function readText({ response, data }: Turn): unknown {
  if (data !== undefined) return data
  const { text } = response
  const start = text.search(/[[{]/)
  const end = Math.max(text.lastIndexOf('}'), text.lastIndexOf(']'))
  if (start < 0 || end < start) return undefined
  try {
    return JSON.parse(text.slice(start, end + 1))
  } catch {
    return undefined // prose with brackets in it; the planner is told that there is no plan
  }
}

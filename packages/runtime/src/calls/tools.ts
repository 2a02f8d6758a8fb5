import { defer, withToolContext, type Tool, type ToolContext } from '@skein/ai'
import { isPlainObject, type JsonObject } from '@skein/base'
import { childTools } from '../children/tools.ts'
import type { DrainContext } from '../contract/context.ts'
import type { Relation, ResolvedSide } from '../definitions/resolved.ts'
import { isEnabled } from '../thread/env.ts'
import type { RunningCall } from './run.ts'

/** What every tool of a side is given: `running` holds what its call gathers. */
type CallContext = ToolContext & { readonly running: RunningCall }

/**
 * What a side may call now: the tools of its prompt, its subagents, and for side A the tools of its
 * client. The tools hold no state of a call, so one list serves the request and the calls. Subagents can
 * be switched on and off by a variable, so the list is made again when variables change.
 */
export function toolsOf(context: DrainContext, side: ResolvedSide): readonly Tool[] {
  const tools: Tool[] = []
  const relations: Relation[] = []
  const env = context.env(side)
  for (const one of side.prompt.tools) {
    if (one.kind === 'subagent') {
      const { optional } = one.relation
      if (optional === undefined || isEnabled(env.get(optional))) relations.push(one.relation)
    } else if (one.kind === 'handoff') {
      const { name, description, agent } = one
      const parameters = { type: 'object', properties: {} } as const
      const run = (): string => `The conversation goes to ${agent}.`
      tools.push({ name, description, parameters, run })
    } else if (!one.tool.run) tools.push(clientTool(one.tool))
    else {
      const { description, parameters, timeoutMs } = one.tool
      const run = (args: JsonObject, { running, ...context }: CallContext) =>
        running.run(args, context)
      const tool = { name: one.name, description, parameters, timeoutMs, run }
      tools.push(withToolContext(tool as Tool)) // Tool hides the types of its parameters
    }
  }
  tools.push(...childTools(context, relations))
  const listed = side.side === 'a' ? context.state.values.get(CLIENT_TOOLS) : undefined
  if (!Array.isArray(listed)) return tools
  // A tool of the prompt wins over a tool of the client with the same name.
  const names = new Set(tools.map(({ name }) => name))
  for (const tool of listed) {
    if (!isPlainObject(tool)) continue
    const { name, description, parameters } = tool
    if (typeof name !== 'string' || typeof description !== 'string' || names.has(name)) continue
    if (isPlainObject(parameters)) tools.push(clientTool({ name, description, parameters }))
  }
  return tools
}

/** The value of a thread that lists the tools of its client. */
export const CLIENT_TOOLS = 'skein.client_tools'

/** A tool that runs at the client: its calls wait for their result. */
function clientTool({
  name,
  description,
  parameters,
}: Pick<Tool, 'name' | 'description' | 'parameters'>): Tool {
  return {
    name,
    description,
    parameters,
    run: (args: JsonObject) =>
      defer({ kind: 'input', request: { kind: 'client_tool', toolName: name, arguments: args } }),
  } as Tool // Tool hides the types of its parameters
}

import { defer, type Tool, type ToolContext, withToolContext } from '@skein/ai'
import { argumentParserMember, argumentParserOf, isPlainObject, type JsonObject } from '@skein/base'
import type { DrainContext } from '../context/drain-context.ts'
import { childTools } from '../children/tools.ts'
import type { Relation, ResolvedSide } from '../definitions/resolved.ts'
import { isEnabled } from '../thread/env.ts'
import { subpromptTool } from '../model/subprompt.ts'
import type { RunningCall } from './running-call.ts'

/** The context that tools get in the runtime: `running` is the call that runs the tool. */
type CallContext = ToolContext & { readonly running: RunningCall }

/**
 * Returns the tools that a side of the conversation may call now: those of its prompt, its subagents, and for
 * side A the tools that run at the client. The tools hold no state of a call, so one list is used for the
 * request and for the calls. Variables can switch subagents on and off, so the list is built again when
 * variables change.
 */
export function toolsOf(context: DrainContext, side: ResolvedSide): readonly Tool[] {
  const tools: Tool[] = []
  const relations: Relation[] = []
  const env = context.env(side)
  for (const one of side.prompt.tools) {
    if (one.kind === 'subagent') {
      const { optional, isHidden } = one.relation
      if (isHidden) continue
      if (optional === undefined || isEnabled(env.get(optional))) relations.push(one.relation)
    } else if (one.kind === 'handoff') {
      const { name, description, agent } = one
      const parameters = { type: 'object', properties: {} } as const
      const run = (): string => `The conversation goes to ${agent}.`
      tools.push({ name, description, parameters, run })
    } else if (one.kind === 'prompt') tools.push(subpromptTool(one))
    else if (!one.tool.run) tools.push(clientTool(one.tool))
    else {
      const { description, parameters, timeoutMs, governance } = one.tool
      const { idempotent, raise } = governance
      // A call of a reading tool whose arguments can raise its risk may be a write.
      const risk = raise ? undefined : governance.risk
      const parser = argumentParserMember(argumentParserOf(one.tool))
      const run = (args: JsonObject, { running, ...context }: CallContext) =>
        running.run(args, context)
      const declaration = { name: one.name, description, parameters, risk, idempotent, timeoutMs }
      const tool = { ...parser, ...declaration, run }
      tools.push(withToolContext(tool as Tool)) // `Tool` declares the parameters of `run` as `never`
    }
  }
  tools.push(...childTools(context, relations))
  const clientTools = side.side === 'a' ? context.state.values.get(CLIENT_TOOLS) : undefined
  if (!Array.isArray(clientTools)) return tools
  // A tool of the prompt overrides a tool of the client with the same name.
  const names = new Set(tools.map(({ name }) => name))
  for (const tool of clientTools) {
    if (!isPlainObject(tool)) continue
    const { name, description, parameters } = tool
    if (typeof name !== 'string' || typeof description !== 'string' || names.has(name)) continue
    if (isPlainObject(parameters)) tools.push(clientTool({ name, description, parameters }))
  }
  return tools
}

/** The key of the thread value that lists the tools of its client. */
export const CLIENT_TOOLS = 'skein.client_tools'

/** Creates a tool that runs at the client: its calls are deferred until the client sends the result. */
function clientTool(tool: Pick<Tool, 'name' | 'description' | 'parameters'>): Tool {
  const { name, description, parameters } = tool
  return {
    ...argumentParserMember(argumentParserOf(tool)),
    name,
    description,
    parameters,
    run: (args: JsonObject) =>
      defer({ kind: 'input', request: { kind: 'client_tool', toolName: name, arguments: args } }),
  } as Tool // `Tool` declares the parameters of `run` as `never`
}

import type { JsonValue } from '@skein/base'
import type { ResolvedSide } from '../definitions/resolved.ts'
import { RuntimeError } from '../error.ts'
import type { RuntimeEvent } from '../event.ts'
import { createThreadFacade } from '../services/thread-facade.ts'
import type { ThreadChange } from '../store/store.ts'
import type { DrainContext, Facade, FacadeUse, ThreadPlace } from './drain-context.ts'

/** The thread as a tool, a hook or an effect of this drain sees it. */
export function openFacade(
  context: DrainContext,
  side: ResolvedSide,
  { tool, config, signal, toolCallId }: FacadeUse = {},
): Facade {
  const { state, head, environment } = context
  const turnId = state.session?.turn?.id
  return createThreadFacade({
    kernel: state,
    head,
    environment,
    env: context.env(side, config),
    signal: signal ?? context.signal,
    immediate: (events) => showNow(context, events),
    invoke: (name, args) => invoke(context, side, { name, args, ...(signal && { signal }) }),
    allowedTools: (tool?.uses ?? []).map((one) => (typeof one === 'string' ? one : one.name)),
    ...(tool && { toolName: tool.name }),
    ...(turnId !== undefined && { turnId }),
    ...(toolCallId !== undefined && { toolCallId }),
  })
}

/** What is transient is only shown. A status also goes to the parent's registry, in the same commit. */
async function showNow(context: DrainContext, events: readonly RuntimeEvent[]): Promise<void> {
  const kept = events.filter((event) => !(event.type === 'custom_event' && event.isTransient))
  const redactor = context.redactor()
  const shown = events.filter((event) => !kept.includes(event))
  if (shown.length > 0)
    context.environment.show(context.head.id, redactor ? redactor.json(shown) : shown)
  if (kept.length === 0) return
  await context.commit('tell', {
    events: kept,
    others: kept.flatMap((event) => toParent(context, event)),
  })
}

/** Publishes a status text to the registry of the parent (§7.10). */
export function toParent({ state, head }: ThreadPlace, event: RuntimeEvent): ThreadChange[] {
  if (event.type !== 'status_changed' || event.text === undefined || !state.parent) return []
  const { at, text } = event
  const updated = {
    type: 'subagent_updated',
    at,
    reference: head.id,
    status: 'running',
    statusText: text,
  } as const
  return [{ id: state.parent.threadId, append: [updated] }]
}

/** A tool called by a tool: it has its own rights and no place in the history. */
async function invoke(
  context: DrainContext,
  side: ResolvedSide,
  { name, args, signal = context.signal }: { name: string; args: JsonValue; signal?: AbortSignal },
): Promise<unknown> {
  const tool = context.environment.registry.tools.get(name)
  if (!tool?.run || tool.governance.risk !== 'read_only')
    throw new RuntimeError(`The tool "${name}" cannot be invoked by another tool.`, {
      code: 'TOOL_NOT_ALLOWED',
      hint: 'Only read_only tools can; let the model call the others, so that they pass the gates.',
    })
  const toolCallId = context.environment.ids()
  const facade = openFacade(context, side, { tool, signal })
  return tool.run(args, {
    state: facade.state,
    signal,
    toolCallId,
    toolName: name,
    idempotencyKey: toolCallId,
  })
}

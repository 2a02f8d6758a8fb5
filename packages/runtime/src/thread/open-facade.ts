import type { JsonValue } from '@skein/base'
import type { DrainContext, Facade, FacadeUse } from '../context/drain-context.ts'
import type { ResolvedSide } from '../definitions/resolved.ts'
import { RuntimeError } from '../contract/error.ts'
import type { RuntimeEvent } from '../contract/event.ts'
import { createThreadFacade } from './facade.ts'
import { statusToParent } from './parent-list.ts'

/**
 * Creates the facade: the object through which a tool, a hook or an effect uses its thread.
 */
export function openFacade(
  context: DrainContext,
  side: ResolvedSide,
  { tool, config, signal, toolCallId }: FacadeUse = {},
): Facade {
  const { state, head, environment } = context
  return createThreadFacade({
    kernel: state,
    head,
    environment,
    env: context.env(side, config),
    signal: signal ?? context.signal,
    immediate: (events) => showNow(context, events),
    invoke: (name, args) => invoke(context, side, { name, args, signal }),
    allowedTools: (tool?.uses ?? []).map((one) => (typeof one === 'string' ? one : one.name)),
    toolName: tool?.name,
    turnId: state.session?.turn?.id,
    toolCallId,
  })
}

/**
 * Publishes the events of `emit` and `setStatus`. Transient events are only sent to readers; the others
 * are committed immediately. A status text is also written to the parent thread, in the same commit.
 */
async function showNow(context: DrainContext, events: readonly RuntimeEvent[]): Promise<void> {
  const lasting = events.filter((event) => !(event.type === 'custom_event' && event.isTransient))
  const transient = events.filter((event) => !lasting.includes(event))
  if (transient.length > 0)
    context.environment.show(context.head.id, context.redactor()?.json(transient) ?? transient)
  if (lasting.length === 0) return
  const others = lasting.flatMap((event) => statusToParent(context, event))
  await context.commit('tell', { events: lasting, others })
}

/**
 * Runs a read-only tool for another tool. The governor does not judge this call, and the
 * history does not contain it.
 */
async function invoke(
  context: DrainContext,
  side: ResolvedSide,
  {
    name,
    args,
    signal = context.signal,
  }: { name: string; args: JsonValue; signal: AbortSignal | undefined },
): Promise<unknown> {
  const tool = context.environment.registry.tools.get(name)
  if (!tool?.run || tool.governance.risk !== 'read_only')
    throw new RuntimeError(`The tool "${name}" cannot be invoked by another tool.`, {
      code: 'TOOL_NOT_ALLOWED',
      hint: 'Only read_only tools can; let the model call the others, so that they pass the gates.',
    })
  const toolCallId = context.environment.ids()
  const { state } = openFacade(context, side, { tool, signal })
  const names = { toolCallId, toolName: name, idempotencyKey: toolCallId }
  return tool.run(args, { state, signal, ...names })
}

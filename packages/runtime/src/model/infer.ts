import { llm } from '@skein/ai'
import type { ResolvedModel, ResolvedSide } from '../definitions/resolved.ts'
import type { RuntimeEvent } from '../event.ts'
import { compactIfLong } from './compact.ts'
import { endSession } from '../session/end.ts'
import { askModel, type Prepared } from './ask.ts'
import { overBudget } from '../usage.ts'
import type { DrainContext } from '../context.ts'
import { logRequest } from './log.ts'
import { modelMessages, paramsOf, systemText } from './prompt.ts'
import { noteMessage, stepStart, takeQueue } from '../session/begin.ts'
import { HookBlockedError } from '../hooks/run.ts'
import type { Step, Turn } from '../state.ts'
import type { SubagentRegistryEntry } from '../thread-state.ts'
import { childRegistry } from '../thread/facade.ts'
import { afterStored } from '../hooks/messages.ts'

/** One step of a side: takes the inbox, asks the model, and commits what it answered. */
export async function infer(context: DrainContext, side: ResolvedSide): Promise<void> {
  const over = await overBudget(context)
  if (over !== undefined)
    return endSession(context, { outcome: 'failed', reason: 'budget_exceeded', message: over })
  await compactIfLong(context, side)
  const { turn, step: begun } = await beginStep(context, side)
  const model = modelOf(side, begun)
  try {
    const request = await prepare(context, side, model)
    await askModel(context, { side, turn, step: begun, model, ...request })
  } catch (error) {
    if (!(error instanceof HookBlockedError)) throw error
    await endSession(context, { outcome: 'failed', reason: 'blocked', message: error.message })
  }
}

/** Takes what has come meanwhile. A step that was opened with the commit before is not opened again. */
async function beginStep(
  context: DrainContext,
  side: ResolvedSide,
): Promise<{ turn: Turn; step: Step }> {
  const { state, epoch } = context
  const turn = state.session!.turn! // `next` asks for a step within a turn only
  const before = turn.step
  const taken = await takeQueue(context, side)
  const events: RuntimeEvent[] = [...taken, ...registryNote(context)]
  if (before?.epoch === epoch) {
    if (events.length > 0) await context.commit('take_queue', { events })
    await afterStored(context, side, taken)
    return { turn, step: before }
  }
  if (before) {
    const again = { turnId: turn.id, stepId: before.id, reason: 'again' }
    events.push({ type: 'step_reset', at: context.at(), ...again })
  }
  events.push(stepStart(context, { turnId: turn.id, side: side.side, before }))
  await context.commit('step_start', { events })
  await afterStored(context, side, taken)
  return { turn: state.session!.turn!, step: state.session!.turn!.step! }
}

/** Each failure goes on to the next fallback; the last one is asked again. */
function modelOf({ prompt }: ResolvedSide, { failures }: Step): ResolvedModel {
  return prompt.models[Math.min(failures, prompt.models.length - 1)]!
}

async function prepare(
  context: DrainContext,
  side: ResolvedSide,
  model: ResolvedModel,
): Promise<Prepared> {
  const { environment, signal } = context
  const system = await systemText(context, side)
  const messages = await modelMessages(context, side)
  const tools = context.tools(side)
  const { output, toolChoice } = side.prompt.definition
  const listed = toolChoice === 'none' ? [] : tools
  const params = paramsOf(model, side)
  const instance = llm({
    model: model.model,
    params,
    tools: listed,
    config: model.definition?.config,
    system,
    structure: output,
    signal,
    clock: environment.clock,
    ids: environment.ids,
  })
  const log = logRequest(context, { side, model, system, tools: listed, params, messages })
  return { instance, messages, log }
}

const HEADING = 'Subagents of this thread:'

/** A line about the children, when it says something new: the history keeps it where it was. */
function registryNote(context: DrainContext): readonly RuntimeEvent[] {
  const { state } = context
  const entries = childRegistry(state)
  // A child that came and went within one call was never spoken of.
  const told = state.registryText[state.session?.turn?.side ?? 'a']
  if (entries.length === 0 && told === undefined) return []
  const text = registryText(entries)
  return text === told ? [] : [noteMessage(context, text, 'registry')]
}

function registryText(entries: readonly SubagentRegistryEntry[]): string {
  if (entries.length === 0) return `${HEADING} none.`
  const lines = entries.map(({ reference, name, threadName, status, resumable }) => {
    const label = threadName === undefined ? name : `${name} "${threadName}"`
    return `- ${label} (reference: ${reference}): ${status}${resumable ? '' : ', not resumable'}`
  })
  return [HEADING, ...lines].join('\n')
}

import {
  type ArgumentParser,
  argumentParserOf,
  type JsonValue,
  messageOf,
  parsedByMember,
} from '@skein/base'
import { GovernanceError } from '@skein/governance'
import type { DrainContext } from '../context/drain-context.ts'
import { attemptId, type EffectState } from '../state/kernel-state.ts'
import { queuedTool } from '../thread/effects.ts'
import type { AgentTaskClass } from '../definitions/agent-definition.ts'
import type { EffectContext, EffectDefinition } from '../definitions/effect-definition.ts'
import type { ToolDefinition } from '../definitions/tool-definition.ts'
import type { SessionGovernor } from '../governance/session-governor.ts'

/** One run of a scheduled effect. All its attempts have the same idempotency key. */
export interface EffectRun {
  readonly effect: EffectState
  /** Undefined when the scheduled effect is no longer defined. */
  readonly definition: EffectDefinition | undefined
  /** The scheduled effect described as a tool, because the governor and the recovery after a crash work with tools. */
  readonly tool: ToolDefinition
  /** The governor, which allows or denies this run; undefined when the scheduled effect is not governed. */
  readonly governor: SessionGovernor | undefined
  /** Why the run may not start: the governor refused to open it, or its arguments do not fit its schema. */
  readonly refusal?: string
  /** The arguments with which it runs: of a governed run the parsed ones, which the governor judges. */
  readonly args: JsonValue
  /** The parse phase that has made `args`; undefined if the effect parses its arguments itself. */
  readonly parser: ArgumentParser | undefined
}

/** The rules (task class) for scheduled effects: they need no evidence, and a person may undo an effect by hand. */
const EFFECT_TASK: AgentTaskClass = {
  name: 'effect',
  needs: [],
  verifiers: [],
  acceptInDoubt: true,
  allowManualRollback: true,
}

/**
 * Collects what a run of a scheduled effect needs. An effect is governed if it declares a risk, or if its agent has
 * rules for its tasks (a task class): each run is then a request of its own in the audit log.
 */
export async function openRun(context: DrainContext, effect: EffectState): Promise<EffectRun> {
  const { environment, head, agent } = context
  const { name, args: given } = effect.scheduled
  const queueTool = queuedTool(environment.registry, name)
  const definition = queueTool ? effectOf(queueTool) : environment.registry.effects.get(name)
  const isGoverned = definition?.risk !== undefined || agent.definition.taskClass !== undefined
  const parsing = queueTool ?? (isGoverned ? definition : undefined)
  const parser = parsing && argumentParserOf(parsing)
  const tool = queueTool ? { ...queueTool, name } : asTool(context, { effect, parser }, definition)
  const raw = { effect, definition, tool, governor: undefined, args: given, parser }
  let args = given
  try {
    args = parser ? await parser.parse(given) : given
  } catch (error) {
    return { ...raw, refusal: messageOf(error) }
  }
  const run = { ...raw, args }
  if (!definition || !isGoverned) return run
  try {
    const governor = await environment.governors.open({
      threadId: head.id,
      rootId: head.rootId,
      tenant: head.tenant,
      owner: head.owner,
      agent: { ...agent, definition: { ...agent.definition, taskClass: EFFECT_TASK } },
      sessionId: runCallId(run, 0),
      input: args,
      tools: [tool],
      commit: (writes) => context.commit('undo', { governance: { ...writes, events: [] } }),
    })
    return { ...run, governor }
  } catch (error) {
    if (!(error instanceof GovernanceError)) throw error
    return { ...run, refusal: error.message }
  }
}

/** Returns a scheduled effect that runs a tool queued with `queueTool`. Its result becomes a hidden message. */
function effectOf(tool: ToolDefinition): EffectDefinition {
  const { name, governance, timeoutMs } = tool
  return {
    kind: 'effect',
    name,
    risk: governance.risk,
    timeoutMs,
    async run(state, args, { signal, effectId, idempotencyKey }) {
      const names = { toolCallId: effectId, toolName: name, idempotencyKey }
      const result = await tool.run?.(args, { state, signal, ...names })
      const text = typeof result === 'string' ? result : JSON.stringify(result ?? null)
      state.injectMessage({ content: `[Result of ${name}]\n${text}`, isSilent: true })
    },
  }
}

function asTool(
  context: DrainContext,
  { effect, parser }: Pick<EffectRun, 'effect' | 'parser'>,
  definition: EffectDefinition | undefined,
): ToolDefinition {
  const { name } = effect.scheduled
  const { description = name, risk = 'write_low_risk', probe, timeoutMs } = definition ?? {}
  // `retry` is about attempts that failed. Whether an attempt with an unknown outcome may be repeated is declared.
  const { idempotent = false } = definition ?? {}
  const look =
    probe &&
    ((args: JsonValue, { signal }: { readonly signal: AbortSignal }) =>
      probe(args, effectContext(context, { effect, parser }, effect.attempts, signal)))
  const payload = 'Undo by hand what the effect did.'
  const rollback = () => ({ type: 'manual', target: name, payload })
  return {
    kind: 'tool',
    name,
    description,
    parameters: {},
    // The casts are safe: the governor passes the arguments of the scheduled effect, which are any JSON.
    governance: {
      risk,
      idempotent,
      timeoutMs,
      probe: look,
      rollback,
    } as ToolDefinition['governance'],
  }
}

export function effectContext(
  { head }: DrainContext,
  { effect: { scheduled, run }, parser }: Pick<EffectRun, 'effect' | 'parser'>,
  attempt: number,
  signal: AbortSignal,
): EffectContext {
  const { effectId } = scheduled
  const idempotencyKey = `${head.id}/${effectId}/${run}`
  return { ...parsedByMember(parser), signal, effectId, attempt, idempotencyKey }
}

/** The id of an attempt for the governor, which judges it. Each attempt is another call, with its own approval. */
export function runCallId(
  { effect: { scheduled, run } }: Pick<EffectRun, 'effect'>,
  attempt: number,
): string {
  return attemptId(scheduled.effectId, run, attempt)
}

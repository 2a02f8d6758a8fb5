import type { JsonObject, JsonValue } from '@skein/base'
import type { GovernedContext, Risk } from '@skein/governance'
import type { ToolDefinition } from '../definitions/types.ts'
import { effectiveRisk, probeTool } from './probe-tool.ts'
import type { SessionGovernor } from './session-governor.ts'

/** A call that was running when its process died. */
export interface CallInDoubt {
  readonly tool: ToolDefinition
  readonly callId: string
  readonly args: JsonValue
  /** Of its session; without one, nothing is written down. */
  readonly governor?: Pick<SessionGovernor, 'recoverCall'>
  /** For the probe of a call that no governor knows. */
  readonly context: Pick<GovernedContext, 'signal' | 'idempotencyKey'>
}

/** What to do about it. */
export type InDoubt =
  /** The effect is there; what the tool answered is lost. */
  | { readonly type: 'done'; readonly message: string }
  /** Admit it again and run it, with the same idempotency key. */
  | { readonly type: 'rerun' }
  /** Park: only a person can say whether it happened. */
  | { readonly type: 'ask'; readonly request: InDoubtRequest }
  /** Tell the model. */
  | { readonly type: 'unknown'; readonly message: string }

/** The request of the interrupt; answered with `result` and `applied`, `absent` or anything else. */
export interface InDoubtRequest extends JsonObject {
  readonly type: 'in_doubt'
  readonly tool: string
  readonly arguments: JsonValue
  readonly question: string
  readonly choices: readonly ['applied', 'absent', 'unknown']
}

/**
 * Settles a call that a crash cut off: looks at the world if the tool can, runs again what has one
 * effect at most, asks a person about high-risk writes, and otherwise says that nobody knows. The
 * governor's journal is told in its next writes.
 */
export async function settleInDoubt(call: CallInDoubt): Promise<InDoubt> {
  const { tool, args } = call
  const risk = effectiveRisk(tool, args)
  switch (await findEffect(call, risk)) {
    case 'applied':
      return done(tool.name)
    case 'absent':
      return { type: 'rerun' }
    case 'in_doubt':
      return risk === 'write_high_risk' ? ask(tool.name, args) : unknown(tool.name)
  }
}

/** What a person's answer to an `ask` means. An answer that is none leaves it unknown. */
export async function answerInDoubt({
  tool,
  callId,
  governor,
  answer,
}: Pick<CallInDoubt, 'callId'> & {
  readonly tool: Pick<ToolDefinition, 'name'>
  readonly governor?: Pick<SessionGovernor, 'settleInDoubt'>
  readonly answer: unknown
}): Promise<Exclude<InDoubt, { type: 'ask' }>> {
  if (answer !== 'applied' && answer !== 'absent') return unknown(tool.name)
  await governor?.settleInDoubt(callId, answer)
  return answer === 'applied' ? done(tool.name) : { type: 'rerun' }
}

async function findEffect(
  { tool, callId, args, governor, context }: CallInDoubt,
  risk: Risk,
): Promise<'applied' | 'absent' | 'in_doubt'> {
  const recorded = await governor?.recoverCall(callId)
  if (recorded) return recorded
  if (risk === 'read_only') return 'absent'
  const found = await probeTool(tool, args, { ...context, callId })
  return found === 'in_doubt' && tool.governance.idempotent ? 'absent' : found
}

function done(tool: string): InDoubt & { readonly type: 'done' } {
  const message = `"${tool}" was cut off by a crash after it had taken effect. What it answered is lost; do not call it again for this.`
  return { type: 'done', message }
}

function unknown(tool: string): InDoubt & { readonly type: 'unknown' } {
  const message = `"${tool}" was cut off by a crash. Whether it took effect is unknown; find out before you call it again.`
  return { type: 'unknown', message }
}

function ask(tool: string, args: JsonValue): InDoubt {
  const question = `"${tool}" was running when the process died. Did it take effect?`
  const choices = ['applied', 'absent', 'unknown'] as const
  return { type: 'ask', request: { type: 'in_doubt', tool, arguments: args, question, choices } }
}

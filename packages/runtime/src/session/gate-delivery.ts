import type { JsonValue } from '@skein/base'
import type { DrainContext } from '../contract/context.ts'
import type { ResolvedSide } from '../definitions/resolved.ts'
import { noteMessage, stepEnd } from './begin.ts'
import { endSession, type SessionEnding } from './end.ts'

/** Ends the session. A completed session has to pass the delivery gate first. */
export async function endGoverned(context: DrainContext, ending: SessionEnding): Promise<void> {
  if (ending.outcome !== 'completed' || (await passesGate(context, ending.message)))
    return endSession(context, ending)
}

/**
 * Whether the governor lets a result out. If not, the consequence is committed here: the model is told
 * the reasons and tries again, or the session fails. Sessions without a task class that ran no governed
 * tool have nothing to judge.
 */
export async function passesGate(context: DrainContext, candidate: JsonValue): Promise<boolean> {
  const { agent, state } = context
  if (!agent.definition.taskClass && !state.session?.isGoverned) return true
  const delivery = await (await context.governor()).deliver(candidate)
  if (delivery.type === 'delivered') return true
  const reasons = delivery.type === 'repair' ? delivery.why : delivery.result.reasons
  const text = reasons
    .map(({ code, detail }) => (detail === undefined ? code : `${code} (${detail})`))
    .join(', ')
  if (delivery.type === 'fail_safe') {
    const message = `The result was not delivered: ${text}.`
    await endSession(context, { outcome: 'failed', reason: 'fail_safe', message })
    return false
  }
  const note = `Your answer was not delivered: ${text}. Correct this and answer again.`
  const events = [...stepEnd(context), noteMessage(context, note, 'gate')]
  await context.commit('repair', { events, isProgress: true })
  return false
}

/** An answer as data, or why it does not have the declared shape. */
export type Delivery = { readonly data: JsonValue } | { readonly problem: string }

/** Reads the answer of a side whose prompt declares an output. Undefined when it declares none. */
export async function readOutput(
  { prompt }: ResolvedSide,
  text: string,
): Promise<Delivery | undefined> {
  const { output } = prompt.definition
  if (!output) return undefined
  let data: JsonValue
  try {
    data = JSON.parse(text) as JsonValue
  } catch {
    return { problem: 'it is not JSON' }
  }
  const checked = await output['~standard'].validate(data)
  if (!checked.issues) return { data }
  const issues = checked.issues.map(({ message, path = [] }) => {
    const keys = path.map((part) => String(typeof part === 'object' ? part.key : part))
    return keys.length > 0 ? `${keys.join('.')}: ${message}` : message
  })
  return { problem: issues.join('; ') }
}

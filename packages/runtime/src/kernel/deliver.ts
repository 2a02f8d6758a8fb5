import type { JsonValue } from '@skein/base'
import type { DrainContext } from './drain-context.ts'
import { endSession, type SessionEnding } from './end-session.ts'
import { noteMessage } from './queue.ts'
import { stepEnd } from './turn-events.ts'

/** A result is delivered only if the gate lets it. */
export async function endGoverned(context: DrainContext, ending: SessionEnding): Promise<void> {
  if (ending.outcome !== 'completed') return endSession(context, ending)
  const delivery = await deliverOf(context, ending.message)
  if (delivery.type !== 'delivered') return notDelivered(context, delivery)
  return endSession(context, ending)
}

export type Judgement =
  { readonly type: 'delivered' } | { readonly type: 'repair' | 'fail_safe'; readonly text: string }

/** Sessions that neither ran a governed tool nor have a task class have nothing to judge. */
export async function deliverOf(context: DrainContext, candidate: JsonValue): Promise<Judgement> {
  const { agent, state } = context
  if (!agent.definition.taskClass && !state.session?.isGoverned) return { type: 'delivered' }
  const governor = await context.governor()
  const delivery = await governor.deliver(candidate)
  if (delivery.type === 'delivered') return { type: 'delivered' }
  const reasons = delivery.type === 'repair' ? delivery.why : delivery.result.reasons
  const text = reasons
    .map(({ code, detail }) => (detail === undefined ? code : `${code} (${detail})`))
    .join(', ')
  return { type: delivery.type, text }
}

/** What a refused result leads to: another try with the reasons, or the end. */
export async function notDelivered(
  context: DrainContext,
  { type, text }: Exclude<Judgement, { type: 'delivered' }>,
): Promise<void> {
  if (type === 'fail_safe')
    return endSession(context, {
      outcome: 'failed',
      reason: 'fail_safe',
      message: `The result was not delivered: ${text}.`,
    })
  const note = `Your answer was not delivered: ${text}. Mend this and answer again.`
  const events = [...stepEnd(context), noteMessage(context, note, 'gate')]
  await context.commit('repair', { events, isProgress: true })
}

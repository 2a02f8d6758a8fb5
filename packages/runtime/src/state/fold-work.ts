import type { EventOf } from '../contract/event-of.ts'
import type { EffectState, KernelState } from './kernel-state.ts'
import { addTokens, addCost } from './usage-sums.ts'

/** Events about scheduled effects, variables that children wait for, grants, and what models were asked. */
export type WorkEvent = EventOf<
  | 'effect_scheduled'
  | 'effect_started'
  | 'effect_ended'
  | 'variables_requested'
  | 'variables_provided'
  | 'grant_made'
  | 'grant_revoked'
  | 'variables_settled'
  | 'model_answered'
  | 'model_requested'
  | 'usage_recorded'
>

/** Applies events about scheduled effects, variables that children wait for, model requests, and token usage. */
export function foldWork(state: KernelState, event: WorkEvent): void {
  switch (event.type) {
    case 'effect_scheduled': {
      // A scheduled effect that is known gets another time (`effects.runNow`). Its run stays the same, so that all its
      // attempts have the same idempotency key.
      const before = state.effects.get(event.effectId)
      state.effects.set(event.effectId, {
        scheduled: event,
        runAt: event.runAt,
        run: before?.run ?? 1,
        attempts: before?.attempts ?? 0,
        runningEpoch: before?.runningEpoch,
        interruptId: before?.interruptId,
        late: before?.late,
      })
      return
    }
    case 'effect_started': {
      const effect = state.effects.get(event.effectId)
      if (!effect) return
      effect.attempts = event.attempt
      effect.runningEpoch = event.epoch
      effect.late = undefined
      dropQuestion(state, effect)
      return
    }
    case 'effect_ended': {
      if (event.outcome === 'failed' || event.outcome === 'unknown') state.effectsYield = true
      const effect = state.effects.get(event.effectId)
      if (!effect) return
      effect.runningEpoch = undefined
      effect.late = undefined
      dropQuestion(state, effect)
      if (event.runAt === undefined) state.effects.delete(event.effectId)
      else effect.runAt = event.runAt
      if (event.isRetry) return
      effect.attempts = 0
      effect.run++
      return
    }
    case 'variables_requested':
      state.variables.set(event.requestId, {
        requested: event,
        provided: undefined,
        reference: undefined,
        error: undefined,
      })
      return
    case 'variables_provided': {
      const pending = state.variables.get(event.requestId)
      if (pending) pending.provided ??= event // only the first answer is used
      return
    }
    case 'grant_made':
      if (!state.grants.has(event.grantId))
        state.grants.set(event.grantId, { made: event, revoked: undefined })
      return
    case 'grant_revoked': {
      const grant = state.grants.get(event.grantId)
      if (grant) grant.revoked ??= event
      return
    }
    case 'variables_settled': {
      const pending = state.variables.get(event.requestId)
      if (!pending) return
      pending.reference = event.reference
      pending.error = event.error
      return
    }
    case 'model_answered': {
      const { toolCallId, usage, costUsd } = event
      if (toolCallId === undefined || !usage) return
      addTokens(state.usage, usage)
      return addCost(state.usage, costUsd)
    }
    case 'model_requested': {
      const { logId, frame, previous, adds, side, toolCallId } = event
      if (toolCallId !== undefined) return // the side's own requests follow each other
      const before = state.lastLog[side]
      const isNext = previous && before?.logId === previous.logId
      // The list grows in place, so that the time for a request depends on what it adds, not on what it repeats.
      const messageIds = isNext ? before.messageIds : []
      if (isNext) messageIds.length = Math.min(messageIds.length, previous.keeps)
      for (const one of adds) messageIds.push(typeof one === 'string' ? one : String(one['id']))
      state.lastLog[side] = { logId, frame, messageIds }
      return
    }
    case 'usage_recorded': {
      addTokens(state.usage, event.usage)
      addCost(state.usage, event.costUsd)
      return
    }
    default:
      event satisfies never
  }
}

/** Removes the question of a scheduled effect that does not wait any more. */
function dropQuestion({ interrupts }: KernelState, effect: EffectState): void {
  if (effect.interruptId !== undefined) interrupts.delete(effect.interruptId)
  effect.interruptId = undefined
}

import type { RuntimeEvent } from '../event.ts'
import type { KernelState } from '../state.ts'

/** Folds children, files, values and variables. Event types that this version does not know change nothing. */
export function foldService(state: KernelState, event: RuntimeEvent): void {
  switch (event.type) {
    case 'subagent_created':
      state.children.set(event.reference, {
        created: event,
        lifecycle: 'running',
        statusText: undefined,
      })
      return
    case 'subagent_updated': {
      const child = state.children.get(event.reference)
      if (!child || child.lifecycle === 'terminated') return
      // A disposable child is over with its first report, whatever it publishes later.
      const hasReported = child.lifecycle === 'completed' || child.lifecycle === 'failed'
      if (hasReported && !child.created.isResumable) return
      child.lifecycle = event.status
      child.statusText = event.statusText
      return
    }
    case 'subagent_ended': {
      const child = state.children.get(event.reference)
      if (!child || child.lifecycle === 'terminated') return
      child.lifecycle = event.outcome
      child.statusText = undefined
      return
    }
    case 'file_written': {
      const { path, mediaType, sizeBytes, hash = '', at: writtenAt } = event
      state.files.set(path, { path, mediaType, sizeBytes, hash, writtenAt })
      return
    }
    case 'file_removed':
      state.files.delete(event.path)
      return
    case 'value_set':
      if (event.value === null) state.values.delete(event.key)
      else state.values.set(event.key, event.value)
      return
    case 'env_set': {
      const { name, value, valueType: type, isScoped = false } = event
      state.envSeq = state.seq
      if (value === null) state.env.delete(name)
      else state.env.set(name, { type, value, isScoped })
      return
    }
    case 'gate_decided':
      if (state.session) state.session.isGoverned = true
      return
    case 'status_changed':
      state.status = event.status
      state.statusText = event.text
      return
    default:
      return foldWork(state, event)
  }
}

/** Folds scheduled effects, variables that children wait for, and the log of model requests. */
function foldWork(state: KernelState, event: RuntimeEvent): void {
  switch (event.type) {
    case 'effect_scheduled':
      state.effects.set(event.effectId, {
        scheduled: event,
        runAt: event.runAt,
        attempts: 0,
        runningEpoch: undefined,
      })
      return
    case 'effect_started': {
      const effect = state.effects.get(event.effectId)
      if (!effect) return
      effect.attempts = event.attempt
      effect.runningEpoch = event.epoch
      return
    }
    case 'effect_ended': {
      const effect = state.effects.get(event.effectId)
      if (!effect) return
      effect.runningEpoch = undefined
      if (event.runAt === undefined) state.effects.delete(event.effectId)
      else effect.runAt = event.runAt
      if (event.outcome === 'done') effect.attempts = 0
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
      if (pending) pending.provided ??= event // the first answer counts
      return
    }
    case 'variables_settled': {
      const pending = state.variables.get(event.requestId)
      if (!pending) return
      pending.reference = event.reference
      pending.error = event.error
      return
    }
    case 'model_requested': {
      const { logId, frame, previous, adds, side } = event
      const before = state.lastLog[side]
      const isNext = previous && before?.logId === previous.logId
      const kept = isNext ? before.messageIds.slice(0, previous.keeps) : []
      const added = adds.map((one) => (typeof one === 'string' ? one : String(one['id'])))
      state.lastLog[side] = { logId, frame, messageIds: [...kept, ...added] }
      return
    }
    case 'usage_recorded': {
      const { input_tokens = 0, output_tokens = 0 } = event.usage
      state.usage.tokens += (input_tokens ?? 0) + (output_tokens ?? 0)
      state.usage.costUsd += event.costUsd ?? 0
      return
    }
    default:
      return
  }
}

import type { EventOf } from '../contract/event-of.ts'
import type { KernelState } from './kernel-state.ts'

/** Events about what a thread has: children, files, values, variables, judgements of the governor, its status. */
export type ContentsEvent = EventOf<
  | 'subagent_created'
  | 'subagent_updated'
  | 'subagent_ended'
  | 'file_written'
  | 'file_removed'
  | 'value_set'
  | 'env_set'
  | 'gate_decided'
  | 'status_changed'
>

/**
 * Applies events about children, files, values, variables, judgements of the governor and the status; passes other
 * events to `foldWork`. Event types that this version does not know change nothing.
 */
export function foldContents(state: KernelState, event: ContentsEvent): void {
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
      // A child that is not resumable has ended with its first report, so later status events are ignored.
      const hasReported = child.lifecycle === 'completed' || child.lifecycle === 'failed'
      if (hasReported && !child.created.isResumable) return
      // While a child waits for a person, its session continues, so its text stays.
      const goesOn = child.lifecycle !== 'idle' && event.status !== 'idle'
      child.statusText = event.statusText ?? (goesOn ? child.statusText : undefined)
      child.lifecycle = event.status
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
      state.fileHashes.add(hash)
      return
    }
    case 'file_removed':
      state.files.delete(event.path)
      return
    case 'value_set':
      state.valueSeqs.set(event.key, state.seq)
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
      state.isToldAwaiting = event.awaitsPerson === true
      return
    default:
      event satisfies never
  }
}

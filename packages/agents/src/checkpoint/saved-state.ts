import type { MessageJSON } from '@skein/ai'
import { type Clock, type IdSource, isDeepFrozen } from '@skein/base'
import type { CheckpointMetadata } from '../contract/checkpoint-store.ts'
import type { AgentStateJSON } from '../state/state-types.ts'

/** Caches the JSON text of frozen messages, so that a save converts only new messages to JSON. */
const texts = new WeakMap<MessageJSON, string>()

/**
 * Returns the JSON text of a state. Texts of frozen messages are cached, so that a save per step stays cheap.
 */
export function stateText({ messages, ...rest }: AgentStateJSON): string {
  const head = JSON.stringify(rest)
  const messageTexts = messages.map((message) => {
    const cachedText = texts.get(message)
    if (cachedText !== undefined) return cachedText
    const text = JSON.stringify(message)
    if (isDeepFrozen(message)) texts.set(message, text)
    return text
  })
  return `${head.slice(0, -1)},"messages":[${messageTexts.join(',')}]}`
}

/** Returns the metadata of a checkpoint that is saved now (UAP §12.4.2). */
export function checkpointMetadata(
  sessionId: string,
  { step, metadata }: AgentStateJSON,
  { clock, ids }: { readonly clock: Clock; readonly ids: IdSource },
): CheckpointMetadata {
  const { agentId } = metadata
  return {
    sessionId,
    checkpointId: ids(),
    timestamp: new Date(clock.now()).toISOString(),
    step,
    agentId: typeof agentId === 'string' ? agentId : '',
  }
}

import { conflict, type GovernedRequest } from './request.ts'
import { type Envelope, hashText, type Streaming, UAICP_VERSION } from '../contract/envelope.ts'
import { type GovernorState, isClosed } from '../journal/governor-state.ts'
import { timestampOf } from '../journal/line-writer.ts'

/**
 * Sends a piece of text to the listener before it is verified, marked as unverified (UAICP §4.2). A chunk
 * that is not in the log yet is written to the log first.
 */
export function emitChunk(request: GovernedRequest, text: string): void {
  const { state } = request
  if (isClosed(state) || state.state === 'fail_safe' || request.broken) {
    throw conflict(request, 'it is over and takes no more chunks')
  }
  const hash = hashText(JSON.stringify(text))
  const index = request.chunkIndex++
  const previous = state.chunks[index]
  // A body that runs again repeats its chunks. A different text is a conflict, because the user has
  // already seen the first text.
  if (previous && previous.hash !== hash) {
    throw conflict(request, `chunk ${index} had another text before`)
  }
  const streaming: Streaming = {
    chunk_id: `${state.request_id}/${index}`,
    is_final: false,
    stream_index: index,
    'uaicp:verified': false,
  }
  if (index === state.chunks.length) {
    const options = { outcome: 'pending' as const, actor: request.agent, streaming }
    const entry = request.submit({ type: 'chunk', data: { hash } }, options)
    // The error is not handled here: a failed write marks the request as broken, so the next operation
    // throws.
    if (typeof entry !== 'number') request.track(entry).catch(() => undefined)
  }
  send(request, { ...streaming, 'uaicp:text': text })
}

/** Counts the chunks of earlier attempts. They are void, because those attempts failed. */
export function countVoid({ chunks, attempt }: GovernorState): number {
  return chunks.filter((chunk) => chunk.attempt !== attempt).length
}

/**
 * Returns the `streaming` member of the last envelope; undefined when there were no chunks. It confirms
 * the chunks, except for the first `uaicp:retracted` ones: after a repair those of earlier attempts, after
 * a failure all.
 */
export function finalStreaming(
  { state }: GovernedRequest,
  isDelivered: boolean,
): Streaming | undefined {
  const index = state.chunks.length
  if (index === 0) return undefined
  const retractions = isDelivered ? countVoid(state) : index
  return {
    chunk_id: `${state.request_id}/${index}`,
    is_final: true,
    stream_index: index,
    'uaicp:verified': isDelivered,
    ...(retractions > 0 && { 'uaicp:retracted': retractions }),
  }
}

/** Sends an envelope with this chunk to the listener `onChunk`. */
export function send(request: GovernedRequest, streaming: Streaming): void {
  const { state, core } = request
  const phase = state.state
  const envelope: Envelope = {
    uaicp_version: UAICP_VERSION,
    request_id: state.request_id,
    trace_id: state.trace_id,
    ...(state.parent_trace_id !== undefined && { parent_trace_id: state.parent_trace_id }),
    state: phase,
    timestamp: timestampOf(core.clock.now()),
    identity: state.identity,
    outcome: phase === 'deliver' ? 'success' : phase === 'fail_safe' ? 'uncertain' : 'pending',
    streaming,
  }
  try {
    request.listeners.onChunk?.(envelope)
  } catch {
    // An error in the listener is ignored, because it must not affect the run.
  }
}

import { hashText, UAICP_VERSION, type Envelope, type Streaming } from '../contract/envelope.ts'
import { timestampOf } from '../journal/journal.ts'
import { isClosed } from '../journal/reduce.ts'
import { conflict, type GovernedRequest } from './request.ts'

/** Streams text before it is verified, marked as such (UAICP §4.2). A new chunk is logged first. */
export function emitChunk(request: GovernedRequest, text: string): void {
  const { state } = request
  if (isClosed(state) || state.state === 'fail_safe' || request.broken) {
    throw conflict(request, 'it is over and takes no more chunks')
  }
  const hash = hashText(JSON.stringify(text))
  const index = request.chunkIndex++
  const known = state.chunks[index]
  // A body that runs again repeats its chunks; a text that differs was already shown to the user.
  if (known && known.hash !== hash) {
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
    const written = request.submit({ type: 'chunk', data: { hash } }, options)
    // A failed write marks the request as broken, and the next operation throws.
    if (typeof written !== 'number') request.track(written).catch(() => undefined)
  }
  send(request, { ...streaming, 'uaicp:text': text })
}

/** Counts chunks from the start of the attempt again, because the body is about to repeat them. */
export function rewindChunks(request: GovernedRequest): void {
  const { chunks, attempt } = request.state
  const first = chunks.findIndex((chunk) => chunk.attempt === attempt)
  request.chunkIndex = first < 0 ? chunks.length : first
}

/** The streaming block of the last envelope: confirms or retracts all chunks. Undefined without any. */
export function finalStreaming(
  { state }: GovernedRequest,
  isDelivered: boolean,
): Streaming | undefined {
  const index = state.chunks.length
  if (index === 0) return undefined
  return {
    chunk_id: `${state.request_id}/${index}`,
    is_final: true,
    stream_index: index,
    'uaicp:verified': isDelivered,
    ...(!isDelivered && { 'uaicp:retracted': index }),
  }
}

/** Hands a streamed envelope to the listener. */
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
    // A listener that fails must not change what the run does; the log has every chunk.
  }
}

import {
  type Envelope,
  type Hash,
  hashText,
  type Streaming,
  UAICP_VERSION,
} from '../contract/envelope.ts'
import { isClosed } from '../journal/state.ts'
import { timestampOf } from '../journal/journal.ts'
import { conflict, type GovernedRequest } from './request.ts'

/** Sends text on its way before it is verified, and says so (UAICP §4.2). */
export function emitChunk(request: GovernedRequest, text: string): void {
  const { state } = request
  if (isClosed(state) || state.state === 'fail_safe' || request.broken) {
    throw conflict(request, 'it is over and takes no more chunks')
  }
  const streaming = positionOf(request, text)
  if (streaming.stream_index === state.chunks.length) log(request, streaming, text)
  send(request, { ...streaming, 'uaicp:text': text })
}

/** Starts counting anew: the body runs again and repeats what it said. */
export function rewindChunks(request: GovernedRequest): void {
  const { chunks, attempt } = request.state
  const first = chunks.findIndex((chunk) => chunk.attempt === attempt)
  request.chunkIndex = first < 0 ? chunks.length : first
}

/** Block of the last envelope: what was streamed is confirmed, or void. Undefined without chunks. */
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

/** Hands a streamed envelope to whoever listens. */
export function send(request: GovernedRequest, streaming: Streaming): void {
  const { state, core } = request
  const envelope: Envelope = {
    uaicp_version: UAICP_VERSION,
    request_id: state.request_id,
    trace_id: state.trace_id,
    ...(state.parent_trace_id !== undefined && { parent_trace_id: state.parent_trace_id }),
    state: state.state,
    timestamp: timestampOf(core.clock.now()),
    identity: state.identity,
    outcome: outcomeOf(state.state),
    streaming,
  }
  try {
    request.listeners.onChunk?.(envelope)
  } catch {
    // A listener that fails must not change what the run does; the log has every chunk.
  }
}

function outcomeOf(state: Envelope['state']): Envelope['outcome'] {
  return state === 'deliver' ? 'success' : state === 'fail_safe' ? 'uncertain' : 'pending'
}

function positionOf(request: GovernedRequest, text: string): Streaming {
  const { state } = request
  const index = request.chunkIndex++
  const known = state.chunks[index]
  if (known && known.hash !== hashOf(text)) {
    throw conflict(request, `chunk ${index} had another text before`)
  }
  return {
    chunk_id: `${state.request_id}/${index}`,
    is_final: false,
    stream_index: index,
    'uaicp:verified': false,
  }
}

function hashOf(text: string): Hash {
  return hashText(JSON.stringify(text))
}

function log(request: GovernedRequest, streaming: Streaming, text: string): void {
  const data = { hash: hashOf(text) }
  const options = { outcome: 'pending' as const, actor: request.agent, streaming }
  const written = request.submit({ type: 'chunk', data }, options)
  // A failed write has marked the request as broken; the next step says so.
  if (typeof written !== 'number') request.track(written).catch(() => undefined)
}

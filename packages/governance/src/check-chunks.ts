import type { Envelope } from './envelope.ts'

/** What is wrong with a stream of chunks. `open`: its last chunk did not come. */
export interface ChunkFault {
  readonly type: 'gap' | 'duplicate' | 'open'
  /** The index that is missing or came again. */
  readonly stream_index: number
}

/** Looks at the chunks of one request as they arrived; empty when nothing is missing or doubled. */
export function checkChunks(chunks: readonly Pick<Envelope, 'streaming'>[]): ChunkFault[] {
  const faults: ChunkFault[] = []
  let next = 0
  let isFinished = false
  for (const { streaming } of chunks) {
    if (!streaming) continue
    const { stream_index } = streaming
    for (; next < stream_index; next++) faults.push({ type: 'gap', stream_index: next })
    if (stream_index < next) faults.push({ type: 'duplicate', stream_index })
    else next = stream_index + 1
    isFinished ||= streaming.is_final
  }
  if (!isFinished) faults.push({ type: 'open', stream_index: next })
  return faults
}

import type { EncodedRequest } from './wire.ts'

/** Replaces `RepeatedFrame` on platforms other than Node: every frame is parsed. */
export class RepeatedFrame {
  readonly isLearning: boolean = false

  textOf(): string | undefined {
    return undefined
  }

  remember(): boolean {
    return false
  }
}

/** Keeps a long list as text. */
export function extended(list: string, text: string): string {
  return list + text
}

/** Never called, because no list is kept as bytes. */
export function inPieces(
  body: string,
  _history: Uint8Array,
  rest: Omit<EncodedRequest, 'body' | 'pieces'>,
): EncodedRequest {
  return { body, ...rest }
}

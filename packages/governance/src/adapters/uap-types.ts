import type { JsonValue } from '@skein/base'
import type { UppTool } from './upp.ts'

/** An execution strategy of UAP §5.1 (`ExecutionStrategy` of `@skein/agents`), by shape. */
export interface UapStrategy {
  readonly name: string
  execute(context: never): Promise<UapResult>
  stream(context: never): UapStream
}

/** The context of one call, as far as it is used here. Everything else passes through. */
export interface UapContext {
  readonly agent: { readonly id: string }
  readonly llm: {
    with(changes: { readonly tools: readonly UppTool[]; readonly signal: AbortSignal }): unknown
  }
  readonly state: UapState
  readonly tools: readonly { readonly name: string }[]
  readonly signal?: AbortSignal
  readonly resume?: { readonly answers: Readonly<Record<string, UapAnswer>> }
  readonly checkpoint?: (state: UapState) => void | Promise<void>
}

/** An agent's state, as far as it is used here. */
export interface UapState {
  readonly step: number
  readonly metadata: Readonly<Record<string, unknown>>
  readonly suspension?: { readonly deferred: readonly UapDeferred[] }
  withMetadata(name: string, value: JsonValue): UapState
}

interface UapDeferred {
  readonly toolCallId: string
  readonly request: { readonly request: unknown }
}

/** What a call that waits is answered with. Here only a token or a denial counts. */
export interface UapAnswer {
  readonly type: string
  readonly token?: string
  readonly reason?: string
}

/** A call that waits for somebody. */
export interface UapInterrupt {
  readonly id: string
  readonly toolCallId: string
  readonly path: readonly string[]
  readonly kind: string
  readonly request: unknown
}

/** What a strategy gives. */
export interface UapResult {
  readonly turn: { readonly data?: unknown; readonly response: { readonly text: string } }
  readonly state: UapState
  readonly interrupts?: readonly UapInterrupt[]
  readonly stopReason?: string
}

/** A run while it happens. */
export interface UapStream extends AsyncIterable<object> {
  readonly result: Promise<UapResult>
  abort(reason?: unknown): void
}

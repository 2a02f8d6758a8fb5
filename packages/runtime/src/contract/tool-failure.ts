import type { FailureCause } from './event.ts'

/** What the code of a tool threw, without secrets. */
export interface ToolFailure extends FailureCause {
  readonly toolCallId: string
  readonly toolName: string
  readonly at: string
}

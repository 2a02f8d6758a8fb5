import type {
  DeferRequest,
  ModelReference,
  ProviderConfig,
  TokenUsage,
  ToolContext,
} from '@skein/ai'
import type { SubagentEvent } from './event.ts'
import type { Answer, Answers } from './interrupt.ts'

/** Who runs: one link of the chain from the outermost agent to this call (UAP §3.4). */
export interface AgentLineage {
  readonly agentId: string
  readonly stateId: string
  readonly sessionId?: string
  readonly parentContext?: AgentLineage
}

/** The second argument of a tool's `run` under an agent (UAP §8.4, §8.7). */
export interface AgentContext extends ToolContext, AgentLineage {
  readonly parentModel: ModelReference
  readonly parentConfig?: ProviderConfig
  readonly step: number
  /** Whether somebody reads events while this happens. */
  readonly streaming: boolean
  /** Session and call: the same however often this call is tried. */
  readonly idempotencyKey: string
  readonly onSubagentEvent: (event: SubagentEvent) => void
  /** In a call that was deferred before: what it waited for, and what came. */
  readonly deferred?: DeferRequest
  readonly answer?: Answer
  /** Answers for interrupts inside this call, by interrupt id. */
  readonly answers?: Answers
  /** Whether the caller's own stop condition would end a run that had spent this much more. */
  readonly shouldStop: (spent: TokenUsage) => Promise<boolean>
}

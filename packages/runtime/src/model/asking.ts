import type { LLMInstance, Message, LLMRequest } from '@skein/ai'
import type { ResolvedModel, ResolvedSide } from '../definitions/resolved.ts'
import type { Step, SideTurn } from '../state/kernel-state.ts'
import type { LoggedRequest } from './log.ts'
import type { InferenceRecorded } from '../contract/event.ts'

/** A request that is ready to be sent. */
export interface PreparedRequest {
  readonly instance: LLMInstance
  readonly messages: readonly Message[]
  readonly log: LoggedRequest
}

/** A request to a model, together with the turn and step to which it belongs. */
export interface Asking extends PreparedRequest {
  readonly side: ResolvedSide
  readonly turn: SideTurn
  readonly step: Step
  readonly model: ResolvedModel
  /** The request of the strategy; set only for a side of the conversation that is an `agent()`. */
  readonly asked: StrategyRequest | undefined
}

/** A request that the strategy of an `agent()` makes, and the data that is recorded with the answer. */
export interface StrategyRequest {
  readonly request: Pick<LLMRequest, 'messages' | 'system' | 'params' | 'tools' | 'structure'>
  readonly record: Pick<InferenceRecorded, 'request' | 'history'>
  /** Whether the answer is meant for the strategy alone and does not become a message of the conversation. */
  readonly isPrivate: boolean
}

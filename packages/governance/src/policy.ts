import type { JsonValue } from '@skein/base'
import type { Hash, Identity, Risk, RollbackAction } from './envelope.ts'
import type { Reason } from './reason.ts'

/** One call as policy, people and the tool see it: frozen, its arguments a snapshot. */
export interface Action {
  readonly request_id: string
  readonly trace_id: string
  readonly call_id: string
  readonly task: string
  readonly tool: string
  readonly risk: Risk
  readonly args: JsonValue
  readonly args_hash: Hash
  readonly identity: Identity
  /** 0 for an outermost run, 1 for its children, … */
  readonly depth: number
  readonly rollback?: RollbackAction
  /** Hash of the policies that judge the action; part of what an approval is bound to. */
  readonly policy_hash: Hash
  /** True for a tool that runs at the model's vendor, where nothing here can watch it. */
  readonly native?: boolean
}

/** What a policy says about an action. */
export interface Decision {
  readonly effect: 'allow' | 'deny' | 'review'
  readonly reasons?: readonly Reason[]
  /** How many different people must approve; 1 by default, the highest of all policies counts. */
  readonly quorum?: number
  /** The person for whom the agent acts (`user_id`) may not approve. */
  readonly fourEyes?: boolean
  /** A signed grant that stands in for a token. `Approvals.checkGrant` has to accept it. */
  readonly grant?: string
}

/** Judges actions. Throwing, or an answer of another shape, blocks the action. */
export interface Policy {
  readonly id: string
  /** Changes when the policy changes. */
  readonly hash: Hash
  /** `shadow`: decides and is logged, but counts for nothing. */
  readonly mode?: 'enforce' | 'shadow'
  /** Undefined: this policy has no opinion. */
  decide(action: Action): Decision | undefined | Promise<Decision | undefined>
}

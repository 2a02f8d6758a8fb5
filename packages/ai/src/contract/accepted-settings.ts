/** The amounts of thinking that vendors have names for, from the least to the most. */
export const efforts = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'] as const
/** A vendor's word for an amount of thinking. `none` switches thinking off. */
export type Effort = (typeof efforts)[number]

/** How a model accepts a setting for how much to think. */
export type AcceptedReasoning =
  /** The model does not think, or nothing can be set. */
  | { readonly by: 'nothing' }
  /** A number of tokens between `min` and `max`; with `canStop`, thinking can be switched off. */
  | {
      readonly by: 'budget'
      readonly min: number
      readonly max: number
      readonly canStop: boolean
      /** Claude Opus 4.5 takes a word in `output_config.effort` next to the budget. */
      readonly withEffort?: boolean
    }
  /** One of these words. With `none` among them, thinking can be switched off. */
  | {
      readonly by: 'effort'
      readonly efforts: readonly Effort[]
      /** True if a number of tokens is accepted instead of a word (Gemini 3). */
      readonly takesBudget?: boolean
    }
  /** Claude from 4.6: the model decides, and `output_config.effort` says how much it may. */
  | {
      readonly by: 'adaptive'
      readonly efforts: readonly Effort[]
      readonly takesBudget?: boolean
      /**
       * How thinking is switched off: with `disabled`, by sending nothing (`absent`), with `between_tools`,
       * the least that the model accepts, or not at all.
       */
      readonly off: 'disabled' | 'absent' | 'between_tools' | 'never'
    }

/** `without_reasoning`: accepted only while the model does not think. */
export type Acceptance = 'accepted' | 'without_reasoning' | 'refused'

/** The settings that one model accepts. A setting that is not named here is accepted. */
export interface AcceptedSettings {
  readonly reasoning: AcceptedReasoning
  /** Whether the model thinks if nothing is set. */
  readonly thinksByDefault: boolean
  /** `temperature`, `topP` and `topK`. */
  readonly sampling: Acceptance
  /** True if `temperature` and `topP` are accepted one at a time only. */
  readonly oneSampler?: boolean
  /** `toolChoice` that forces a call: `required`, or a named tool. */
  readonly forcedTools: Acceptance
  readonly stop: 'accepted' | 'refused'
  /** The largest `maxOutputTokens`; undefined if no source states it. */
  readonly maxOutputTokens?: number
}

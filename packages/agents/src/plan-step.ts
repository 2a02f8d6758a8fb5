export type PlanStepStatus = 'pending' | 'in_progress' | 'completed' | 'failed'

/** One step of a plan (UAP §5.4). */
export interface PlanStep {
  readonly id: string
  readonly description: string
  /** The tool to use, if the planner named one. */
  readonly tool?: string
  /** Ids of the steps that must be completed first. */
  readonly dependsOn: readonly string[]
  readonly status: PlanStepStatus
}

/** Results of one check. */
export const CHECK_RESULTS = ['pass', 'fail', 'skip'] as const

/** One thing a verifier looked at. */
export interface Check {
  readonly check_id: string
  readonly result: (typeof CHECK_RESULTS)[number]
  readonly details?: string
}

/** Results of a whole report. Only `pass` opens the gate. */
export const REPORT_STATUSES = ['pass', 'fail', 'partial'] as const

/** UAICP verification report: what one verifier found, looking at which evidence. */
export interface VerificationReport {
  readonly report_id: string
  readonly request_id: string
  readonly verifier_id: string
  readonly evidence_ids: readonly string[]
  readonly status: (typeof REPORT_STATUSES)[number]
  readonly checks: readonly Check[]
  readonly generated_at: string
}

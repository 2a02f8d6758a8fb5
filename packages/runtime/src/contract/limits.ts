import { defaultInputLimits, type InputLimits } from '@skein/base'

/** Limits of a runtime; each has a default. */
export interface RuntimeLimits extends Pick<InputLimits, 'maxToolCalls' | 'maxToolResultBytes'> {
  /** The largest number of requests for one answer of a model, including its fallback models. Default 4. */
  readonly modelAttempts: number
  /**
   * Delay before the second request; it doubles with each further request. If the vendor asks for a longer
   * delay, that delay is used. Default 1 s.
   */
  readonly modelBackoffMs: number
  /** How long a model may send nothing before its request is cut and sent again. Default 10 min. */
  readonly modelIdleMs: number
  /** How long one request to a model may take before it is cut and sent again. Default 1 h. */
  readonly modelMs: number
  /**
   * How many failures without progress a thread may have before the runtime gives it up: errors of the work
   * on it, and deaths of a process in which this thread worked alone. Default 5.
   */
  readonly drainAttempts: number
  /**
   * How long a process may work on a thread without renewing its lease. The process renews the lease after a third,
   * and gives up its calls after two thirds. Default 30 s; with `nodes` or an engine 7.5 s, so that another node goes
   * on within 10 s after a death.
   */
  readonly leaseMs: number
  /** How many levels deep children may be nested. Default 8. */
  readonly depth: number
  /** How many steps in a row may fail with the same tool error before the session ends. Default 8. */
  readonly sameErrors: number
  /** How many steps a side without its own `maxSteps` may take in one session. Default 250. */
  readonly maxSteps: number
  /**
   * How often agents may hand a thread over before a person has to speak again. Default 10. Until a person
   * speaks, the steps, turns and repeated errors of each agent count over all its sessions.
   */
  readonly maxHandoffs: number
  readonly hookTimeoutMs: number
  readonly maxFileBytes: number
  /**
   * The largest image that is sent to a model; of a larger one only the name is sent. Default 3.75 MiB, which
   * is 5 MiB as base64.
   */
  readonly maxImageBytes: number
  /** The maximum bytes of all files in one request; the newest files are sent first. Default 14 MiB. */
  readonly maxMediaBytes: number
  /** The maximum number of files in one request. Default 20. */
  readonly maxMediaFiles: number
  /** The maximum bytes of a message: of its JSON from a client or a tool, of its texts from a model. */
  readonly maxMessageBytes: number
  /**
   * How long a write may take to end by itself after its time limit, or after it was asked to stop; a result within this
   * time counts. After it, the write is in doubt. Default 5 s.
   */
  readonly stopGraceMs: number
  /** How long the runtime waits for an approval or a client's answer. Default 7 days. */
  readonly interruptTtlMs: number
  /** How long the runtime waits for the variables that a child needs. Default 24 h. */
  readonly variablesTtlMs: number
  /**
   * How long the event loop may be blocked before the watchdog names the tool, hook or effect that is running.
   * `Infinity` switches the watchdog off. Default 1 s.
   */
  readonly loopBlockedMs: number
}

/** The default limits. */
export const defaultLimits: RuntimeLimits = {
  modelAttempts: 4,
  modelBackoffMs: 1_000,
  modelIdleMs: 10 * 60_000,
  modelMs: 3_600_000,
  drainAttempts: 5,
  leaseMs: 30_000,
  depth: 8,
  sameErrors: 8,
  maxSteps: 250,
  maxHandoffs: 10,
  hookTimeoutMs: 5_000,
  maxFileBytes: 64 * 1024 * 1024,
  maxImageBytes: 3.75 * 1024 * 1024,
  maxMediaBytes: 14 * 1024 * 1024,
  maxMediaFiles: 20,
  maxMessageBytes: defaultInputLimits.maxMessageBytes,
  maxToolCalls: defaultInputLimits.maxToolCalls,
  maxToolResultBytes: defaultInputLimits.maxToolResultBytes,
  stopGraceMs: 5_000,
  interruptTtlMs: 7 * 24 * 3_600_000,
  variablesTtlMs: 24 * 3_600_000,
  loopBlockedMs: 1_000,
}

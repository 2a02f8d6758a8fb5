import { type JsonObject, type RecordedArguments } from '@skein/base'
import { type DeferRequest, type ToolCall, type ToolOutcome } from '../contract/tool.ts'

/**
 * What one call runs with: a gate (may refuse it), a journal (records it durably) and more; `ToolBatch.open`
 * makes it.
 */
export interface CallPorts {
  /** The outcome, if a journal has already recorded it; the call then does not run again. */
  readonly settled?: ToolOutcome
  /**
   * True if a person has already approved this call, e.g. before the run was resumed; the tool's `approval`
   * is skipped.
   */
  readonly isApproved?: boolean
  /**
   * The arguments that were parsed before, when a person was asked or before a crash. The call runs with exactly
   * these. If the definition of the tool has changed since, what the model sent is parsed again, and if the result
   * is another one, `isApproved` does not count.
   */
  readonly parsed?: RecordedArguments
  readonly gate?: ToolGate
  readonly journal?: ToolJournal
  /** Extra fields of the second argument of `run` and `approval`. */
  readonly context?: object
  /** Called with each value that a tool yields while it runs; the last value is also its result. */
  progress?(call: ToolCall, output: unknown): void
  /**
   * Decides whether a write that has started still gets an outcome after an abort with this reason. If so, returns the
   * message for a call that obeys its signal; a call that does not has `stopGraceMs` to end, and is `unknown` then.
   * Default: tools with the risk of a write have this time, and all others are dropped.
   */
  settlesAfter?(reason: unknown): string | undefined
  /**
   * Called when a write ends whose outcome was not waited for any more: it was recorded as unknown, or the batch was
   * aborted. Not called for a tool that stopped because of its signal.
   */
  late?(call: ToolCall, outcome: LateOutcome): void
  /**
   * May replace the outcome that the model sees. Called for every
   * settled outcome, also of calls that did not run. It may defer a call whose outcome is unknown, e.g. to ask a
   * person what the call did.
   */
  review?(call: ToolCall, outcome: SettledOutcome): ToolOutcome | Promise<ToolOutcome>
}

/** Returns what a call runs with. */
export type OpenPorts = (call: ToolCall) => CallPorts

/**
 * Decides whether a call may run and records its outcome; governance implements it. Called after the tool's
 * own `approval` has agreed. An error thrown by a gate fails the batch.
 */
export interface ToolGate {
  admit(call: ToolCall): ToolAdmission | Promise<ToolAdmission>
  /**
   * Called after an admitted call has run, just before the journal commits its end. `outcome` is the real
   * outcome of the tool, before hooks replaced what the model sees. Not called for a deferred call.
   */
  settle?(call: ToolCall, outcome: SettledOutcome): void | Promise<void>
}

/** A gate's decision about one call. */
export type ToolAdmission =
  | {
      readonly type: 'allow'
      /**
       * The arguments that the gate checked; the call runs with exactly these arguments. Default: the call's
       * arguments.
       */
      readonly arguments?: JsonObject
      /** Additional fields for the context of `run`, e.g. an idempotency key. */
      readonly context?: object
    }
  | { readonly type: 'deny'; readonly reason: string }
  | { readonly type: 'defer'; readonly request: DeferRequest }

/** Records a call durably. Awaited before a call starts and after it ended; an error thrown here fails the batch. */
export interface ToolJournal {
  commit(effect: ToolEffect): void | Promise<void>
}

/**
 * One record for a journal. A call that does not run has only a `call_end`. The arguments of `call` are the parsed
 * ones; `parsed` repeats them with the hash of the schema, for `CallPorts.parsed`.
 */
export type ToolEffect =
  | { readonly type: 'call_start'; readonly call: ToolCall; readonly parsed?: RecordedArguments }
  | {
      readonly type: 'call_end'
      readonly call: ToolCall
      readonly outcome: ToolOutcome
      readonly parsed?: RecordedArguments
    }

/** A final outcome. A deferred call has none yet. */
export type SettledOutcome = Exclude<ToolOutcome, { readonly type: 'deferred' }>

/** The outcome of a tool whose call has ended without it. */
export type LateOutcome = Extract<ToolOutcome, { readonly type: 'done' | 'error' }>

/**
 * Combines the ports (gate, journal and so on) of a model's instance, the owner, with those of one batch that
 * runs with it. Both journals commit, the owner's first. The gate and review of the batch are used only where
 * the owner has none.
 */
export function joinPorts(
  owner: OpenPorts | undefined,
  batch: OpenPorts | undefined,
): OpenPorts | undefined {
  if (!owner || !batch) return owner ?? batch
  return (call) => {
    const [first, second] = [owner(call), batch(call)]
    const reviewer = first.review ? first : second
    const journals = [first.journal, second.journal].filter((journal) => journal !== undefined)
    return {
      settled: first.settled ?? second.settled,
      isApproved: first.isApproved || second.isApproved,
      parsed: first.parsed ?? second.parsed,
      gate: first.gate ?? second.gate,
      journal: {
        commit: async (effect) => {
          for (const journal of journals) await journal.commit(effect)
        },
      },
      context: { ...second.context, ...first.context },
      settlesAfter:
        first.settlesAfter || second.settlesAfter
          ? (reason) => first.settlesAfter?.(reason) ?? second.settlesAfter?.(reason)
          : undefined,
      late: (ended, outcome) => {
        first.late?.(ended, outcome)
        second.late?.(ended, outcome)
      },
      progress: (running, output) => {
        first.progress?.(running, output)
        second.progress?.(running, output)
      },
      review: async (reviewed, outcome) => (await reviewer.review?.(reviewed, outcome)) ?? outcome,
    }
  }
}

import { canonicalJson, type JsonValue } from '@skein/base'

/** One effect on the world outside of the runtime, written down in the moment in which it happens. */
export interface Deed {
  readonly tool: string
  readonly threadId: string
  /** The call or the scheduled effect that did it. The undoing of a call has an id of its own. */
  readonly callId: string
  /** What the model named; unique per call. */
  readonly ref: string
  /** What the code was given, as canonical JSON. */
  readonly args: string
}

/** One run of the code of a call, in one process. */
interface Run {
  readonly call: Pick<Deed, 'tool' | 'threadId' | 'callId' | 'ref'>
  /** Whether the process of the run still lives. */
  readonly lives: () => boolean
  end: 'returned' | 'failed' | undefined
}

/** The world outside of the runtime: what tools did to it, in order, counted where no crash can reach. */
export class Ledger {
  readonly deeds: Deed[] = []
  readonly #runs: Run[] = []

  /** A tool takes effect. */
  note(deed: Omit<Deed, 'args'> & { readonly args: unknown }): void {
    // What schemas make of arguments is JSON.
    this.deeds.push({ ...deed, args: canonicalJson(deed.args as JsonValue) })
  }

  has(tool: string, ref: string): boolean {
    return this.deeds.some((one) => one.tool === tool && one.ref === ref)
  }

  /** Runs the code of a call, and remembers how it ended in its process. */
  async watch<T>(call: Run['call'], lives: Run['lives'], work: () => Promise<T>): Promise<T> {
    const run: Run = { call, lives, end: undefined }
    this.#runs.push(run)
    try {
      const result = await work()
      run.end = 'returned'
      return result
    } catch (error) {
      run.end = 'failed'
      throw error
    }
  }

  /** Whether a call may still take effect, because a process that lives runs its code. */
  isOpen(tool: string, ref: string): boolean {
    return this.#runs.some(
      ({ call, lives, end }) =>
        end === undefined && call.tool === tool && call.ref === ref && lives(),
    )
  }

  /** The calls whose code has returned in a process that lives. */
  returned(): readonly Run['call'][] {
    return this.#runs
      .filter(({ end, lives }) => end === 'returned' && lives())
      .map(({ call }) => call)
  }
}

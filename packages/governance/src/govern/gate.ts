import { type Clock, type JsonSchema, type JsonValue, systemClock } from '@skein/base'
import { type SigningDesk, developmentDesk } from '../approvals/signing-desk.ts'
import { memoryLog } from '../audit/memory-log.ts'
import { type ApprovalRequest } from '../contract/approval.ts'
import { hashJson, type Identity, uuidOf } from '../contract/envelope.ts'
import {
  defineTaskClass,
  type Governance,
  governed,
  type GovernedTool,
  type TaskClass,
} from '../contract/governed.ts'
import { type Policy, standardPolicy } from '../contract/policy.ts'
import { NoEffectError, reason, refusal } from '../contract/reason.ts'
import type { Result, Run } from '../contract/run.ts'
import { governor, type Governor } from '../governor.ts'
import type { AuditLog } from '../journal/journal.ts'
import { isClosed, isNamedCall, openReviews } from '../journal/governor-state.ts'
import type { PayloadStore } from '../contract/evidence.ts'

/**
 * Options of `governAiSdk`, `governOpenAiAgents` and `governLangChain`. Each of them may be left out in
 * development; `onDefault` is called once for each default that must not be used in production.
 */
export interface GovernOptions {
  /** The governor's id, also the audience of its approval tokens. */
  readonly id?: string
  /** Returns which agent acts, and for whom. `context` is the value that the framework passes to its tools. */
  readonly identity?: (context: unknown) => Identity
  /** Default: `standardPolicy`, which asks a person before each high-risk write. */
  readonly policy?: Policy
  /** Default: in memory, so that a restart forgets the calls that wait; they are then refused. */
  readonly audit?: AuditLog
  /** Default: in memory. */
  readonly payloads?: PayloadStore
  /** Checks approvals, and signs them for the person whom your server has authenticated. */
  readonly desk?: SigningDesk
  /** Returns the id of the conversation. Needed if the ids of calls are not unique across conversations. */
  readonly conversation?: (context: unknown) => string
  readonly clock?: Clock
  /** Called once for each default in use that is only for development. Default: a warning of the process. */
  readonly onDefault?: (notice: string) => void
}

/** A framework's tool with its declarations for governance, e.g. its risk. */
export type Tiered<Tool, Args> = { readonly tool: Tool } & Governance<Args, never>

/** One call that a framework is about to make. */
export interface GateCall {
  readonly id: string
  readonly tool: string
  readonly args: unknown
  /** The value that the framework passes to its tools. */
  readonly context: unknown
}

interface Performing {
  readonly tool: string
  readonly run: (args: JsonValue) => unknown
  hasRun: boolean
}

/** A tool of a framework: the fields that `CallGate` needs. */
export interface GateTool {
  readonly name: string
  readonly description: string
  readonly parameters: JsonSchema
  readonly governance: Governance<never, never>
}

/**
 * Governs the calls of a framework that can itself pause for an approval. Each call is one request of the
 * governor, whose id comes from the id of the call, so that the framework finds the same request when it goes
 * on in another process. `ask` comes before the pause and `perform` after it.
 */
export class CallGate {
  readonly #options: GovernOptions
  readonly #tools: ReadonlyMap<string, GovernedTool>
  readonly #governor: Governor
  readonly #desk: Promise<SigningDesk>
  /** The framework's function that runs a call, by request id, while `perform` works on the call. */
  readonly #performing = new Map<string, Performing>()
  /** The function that runs a tool when it undoes another call, by the tool's name. */
  readonly #alone = new Map<string, (args: JsonValue) => unknown>()

  constructor(tools: readonly GateTool[], options: GovernOptions) {
    this.#options = options
    sayDefaults(options)
    const { id = 'development', clock = systemClock, audit, payloads, policy } = options
    this.#tools = new Map(tools.map((tool) => [tool.name, this.#govern(tool)]))
    this.#desk = options.desk ? Promise.resolve(options.desk) : developmentDesk(id, clock)
    this.#governor = governor({
      id,
      clock,
      audit: audit ?? memoryLog(),
      payloads,
      policy: policy ?? standardPolicy,
      approvals: {
        redeem: async (...args) => (await this.#desk).approvals.redeem(...args),
        checkGrant: async (...args) =>
          (await (await this.#desk).approvals.checkGrant?.(...args)) ?? {
            ok: false,
            reason: reason('APPROVAL_INVALID', undefined, 'this desk checks no grants'),
          },
      },
    })
  }

  /**
   * Returns the approval request if a person must answer before the call may run, and undefined if the
   * framework may make the call now. (`perform` decides again, and may refuse it.) Only a request that
   * was returned here can be approved later.
   */
  async ask(call: GateCall): Promise<ApprovalRequest | undefined> {
    const requestId = this.#requestIdOf(call)
    const state = await this.#governor.state(requestId)
    if (state) {
      const isSame = state.opened.input_hash === hashJson(inputOf(call))
      // A call that was approved or has ended does not wait any more.
      if (!isSame || isClosed(state) || openReviews(state).length === 0) return undefined
      const again = await this.#resume(requestId, call)
      return again.outcome === 'pending' ? again.waiting[0] : undefined
    }
    const init = { ...this.#initOf(call), request_id: requestId }
    const task = this.#taskOf(call.tool)
    if ((await this.#governor.preview(task, init, callOf(call))) !== 'review') return undefined
    const result = await this.#governor.run(task, init, this.#bodyOf(call))
    return result.outcome === 'pending' ? result.waiting[0] : undefined
  }

  /** True if `ask` has returned an approval request for this call, with whatever arguments. */
  async wasAsked(call: GateCall): Promise<boolean> {
    const state = await this.#governor.state(this.#requestIdOf(call))
    return state !== undefined && state.reviews.size > 0
  }

  /** True if the call has ended, so that its answer is recorded. */
  async hasEnded(call: GateCall): Promise<boolean> {
    const state = await this.#governor.state(this.#requestIdOf(call))
    return state !== undefined && isClosed(state)
  }

  /**
   * Makes a call after the framework's pause, or without one if `ask` returned nothing. `run` is the
   * framework's own function. A call that was made before returns its recorded result. Throws
   * GovernanceError if the call may not run.
   */
  async perform(call: GateCall, run: (args: JsonValue) => unknown): Promise<JsonValue> {
    const requestId = this.#requestIdOf(call)
    const state = await this.#governor.state(requestId)
    this.#performing.set(requestId, { tool: call.tool, run, hasRun: false })
    try {
      if (state && state.opened.input_hash !== hashJson(inputOf(call))) {
        const detail = 'the call was asked for with other arguments'
        throw refusal(call.tool, [reason('APPROVAL_SCOPE', call.tool, detail)])
      }
      if (!state) {
        // No one has seen this call, so whatever the framework says, no one has approved it.
        const approve = async () =>
          ({ type: 'deny', reason: 'no one was asked about this call' }) as const
        const init = { ...this.#initOf(call), request_id: requestId, approve }
        const task = this.#taskOf(call.tool)
        return valueOf(call, await this.#governor.run(task, init, this.#bodyOf(call)))
      }
      const review = openReviews(state)[0]?.review
      const result = await this.#resume(requestId, call)
      if (result.outcome !== 'pending') return valueOf(call, result)
      const [request] = result.waiting
      if (!request || request.id !== review)
        return await this.#tooLate(requestId, call, request?.id)
      const tokens = [await (await this.#desk).sign(request, call.context)]
      return valueOf(call, await this.#resume(requestId, call, { tokens }))
    } finally {
      this.#performing.delete(requestId)
    }
  }

  /** Records that a person refused the call, and throws the refusal. */
  async refuse(call: GateCall, why: string): Promise<never> {
    const requestId = this.#requestIdOf(call)
    const state = await this.#governor.state(requestId)
    const review = state && openReviews(state)[0]?.review
    if (review !== undefined)
      valueOf(call, await this.#resume(requestId, call, { denials: [{ id: review, reason: why }] }))
    throw refusal(call.tool, [reason('APPROVAL_DENIED', call.tool, why)])
  }

  /** Ends a request whose approval request was answered too late; no one has seen the new one. */
  async #tooLate(requestId: string, call: GateCall, review: string | undefined): Promise<never> {
    const late = reason('APPROVAL_EXPIRED', call.tool, 'the approval came too late')
    const denials = review === undefined ? [] : [{ id: review, reason: late.detail ?? '' }]
    await this.#resume(requestId, call, { denials })
    throw refusal(call.tool, [late])
  }

  #resume(
    requestId: string,
    call: GateCall,
    answers: Parameters<Governor['resume']>[3] = {},
  ): Promise<Result<JsonValue>> {
    return this.#governor.resume(requestId, this.#taskOf(call.tool), this.#bodyOf(call), answers)
  }

  #bodyOf(call: GateCall): (run: Run) => Promise<JsonValue> {
    return async (run) => {
      const { id, tool, args } = callOf(call)
      const entry = this.#tools.get(tool)
      if (!entry) throw refusal(tool, [reason('TOOL_UNKNOWN', tool)])
      return (await run.call(entry, args as never, { id })).result as JsonValue
    }
  }

  #govern({ name, description, parameters, governance }: GateTool): GovernedTool {
    const run = (args: JsonValue, { requestId }: { readonly requestId: string }): unknown => {
      const performing = this.#performing.get(requestId)
      if (!performing)
        throw new NoEffectError(`"${name}" runs only when its framework makes the call.`)
      if (performing.tool === name && !performing.hasRun) {
        performing.hasRun = true
        return performing.run(args)
      }
      // The governor calls this tool to undo a failed call, which the framework did not ask for.
      const alone = this.#alone.get(name)
      if (alone) return alone(args)
      throw new NoEffectError(`"${name}" has no function to run.`)
    }
    return governed({ name, description, parameters, run: run as never }, governance as never)
  }

  /** Sets the function that runs a tool when it undoes another call, outside the framework. */
  setAlone(name: string, run: (args: JsonValue) => unknown): void {
    this.#alone.set(name, run)
  }

  /** Every task has all tools, because a rollback may call any of them. */
  #taskOf(tool: string): TaskClass {
    const tools = [...this.#tools.values()]
    return defineTaskClass({ name: `call of ${tool}`, tools, needs: [], verifiers: [] })
  }

  #initOf(call: GateCall): { identity: Identity; input: JsonValue } {
    const { identity = () => DEVELOPER } = this.#options
    return { identity: identity(call.context), input: inputOf(call) }
  }

  #requestIdOf({ id, context, tool }: GateCall): string {
    if (id === '') {
      const detail = 'the framework gave the call no id, by which it could be found again'
      throw refusal(tool, [reason('SCHEMA_INVALID', tool, detail)])
    }
    const { conversation = () => '' } = this.#options
    return uuidOf(`${this.#governor.id}\n${conversation(context)}\n${id}`)
  }
}

/** Returns the input that is recorded for the request of a call. */
function inputOf({ tool, args }: GateCall): JsonValue {
  return { tool, args: JSON.parse(JSON.stringify(args ?? {})) as JsonValue }
}

/** Converts a call for the governor. An id like `1.2`, as unnamed calls have, gets a prefix. */
function callOf(call: GateCall): { id: string; tool: string; args: JsonValue } {
  const { args } = inputOf(call) as { args: JsonValue }
  return { id: isNamedCall(call.id) ? call.id : `call ${call.id}`, tool: call.tool, args }
}

function valueOf(call: GateCall, result: Result<JsonValue>): JsonValue {
  if (result.state === 'deliver') return result.value
  if (result.state === 'fail_safe') throw refusal(call.tool, result.reasons)
  const [first] = result.outcome === 'pending' ? (result.rejected ?? []) : []
  throw refusal(call.tool, [first ?? reason('APPROVAL_REQUIRED', call.tool)])
}

const DEVELOPER: Identity = {
  agent_id: 'development-agent',
  owner_id: 'development',
  control_class: 'human-supervised',
}

function sayDefaults(options: GovernOptions): void {
  const { onDefault = warn } = options
  const notices: readonly (readonly [keyof GovernOptions, string])[] = [
    ['identity', 'every call is made by "development-agent"'],
    ['audit', 'the audit log is in memory, and a restart refuses the calls that wait'],
    ['payloads', 'arguments and results are in memory'],
    ['desk', 'every answer counts as that of "developer", who may approve everything'],
  ]
  for (const [name, notice] of notices) {
    if (options[name] === undefined) onDefault(`Development default for "${name}": ${notice}.`)
  }
}

/** Emits a process warning, if the platform has them; this package never prints by itself. */
function warn(notice: string): void {
  const { process } = globalThis as {
    readonly process?: { emitWarning?: (text: string, options: object) => void }
  }
  process?.emitWarning?.(notice, { type: 'SkeinGovernance' })
}

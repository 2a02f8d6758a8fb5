import { llm, type LLMInstance, type Tool } from '@skein/ai'
import { CLIENT_TOOLS, openGovernor, toolsOf } from './calls/gate.ts'
import type { ResolvedAgent, ResolvedSide } from './definitions/resolved.ts'
import type { PromptToolConfig } from './definitions/types.ts'
import type { Drain } from './dispatch/dispatcher.ts'
import { RuntimeError } from './contract/error.ts'
import type { StoredEvent } from './contract/event.ts'
import type { SessionGovernor } from './governance/session-governors.ts'
import { createEnvReader, type EnvReader } from './thread/env.ts'
import { envContext, type Redactor } from './secrets/vault.ts'
import {
  type Claim,
  type Commit,
  type CommitResult,
  isStoreError,
  type ThreadChange,
  type ThreadHead,
} from './store/store.ts'
import { activate, bootChild } from './children/activate.ts'
import { runCalls } from './calls/run.ts'
import { runEffect, settleEffect } from './calls/effects.ts'
import { settleInDoubt } from './calls/in-doubt.ts'
import { infer } from './model/infer.ts'
import { beginSession, cascade, close, expire, failStuck, park } from './session/session.ts'
import { endStep } from './session/end-step.ts'
import { runStrategy } from './run-agent.ts'
import {
  type DrainContext,
  type Facade,
  type FacadeUse,
  isStop,
  type KernelEnvironment,
  type Write,
} from './contract/context.ts'
import { openFacade } from './thread/changes.ts'
import { KernelFold } from './fold/fold.ts'
import { type KernelAction, next } from './next.ts'
import type { KernelState } from './contract/state.ts'

/** Keeps the fold of a thread between two drains, so that a busy thread's events are folded only once. */
export interface FoldMemory {
  take(threadId: string): KernelFold | undefined
  put(threadId: string, fold: KernelFold): void
}

/**
 * Returns the drain function: it claims a thread, folds its log, asks `next` for an action and performs it,
 * until there is nothing left to do. A drain ends without an error when another drain has claimed the thread
 * meanwhile, because the epoch of the first drain is then no longer valid.
 */
export function createDrain(environment: KernelEnvironment, memory?: FoldMemory): Drain {
  return async (threadId, signal) => {
    const claim = await environment.store.claim(threadId)
    if (!claim) return
    const fold = memory?.take(threadId) ?? new KernelFold()
    const drain = new ThreadDrain(environment, claim, fold, signal)
    try {
      await drain.run()
      memory?.put(threadId, fold)
    } catch (error) {
      // Once another drain has claimed the thread, an error here is only a consequence of that, so it is not
      // reported.
      if (drain.isFenced || isStoreError(error, 'FENCED')) return
      if (error instanceof RuntimeError && error.code === 'LOG_VERSION') {
        // This claim must not count as an attempt: a newer program that can read the log would
        // otherwise find the thread failed.
        const { head, epoch: fence } = claim
        const change = { id: head.id, fence, head: { attempts: head.attempts - 1 } }
        await environment.commit({ point: 'take_back_claim', threads: [change] })
      }
      throw error
    }
  }
}

class ThreadDrain implements DrainContext {
  readonly environment: KernelEnvironment
  readonly head: ThreadHead
  readonly epoch: number
  readonly signal: AbortSignal
  /** Whether another drain has claimed the thread; the store then rejects every commit of this drain. */
  isFenced = false
  #isDue = false
  readonly #fold: KernelFold
  #governor: Promise<SessionGovernor> | undefined
  #openGovernor: SessionGovernor | undefined
  #last: Promise<void> = Promise.resolve()
  readonly #hidden = new Set<string>()
  #tools: { readonly key: readonly unknown[]; readonly tools: readonly Tool[] } | undefined
  #redactor: { readonly key: string; readonly redactor: Redactor | undefined } | undefined

  constructor(environment: KernelEnvironment, claim: Claim, fold: KernelFold, signal: AbortSignal) {
    this.environment = environment
    this.head = claim.head
    this.epoch = claim.epoch
    this.signal = signal
    this.#fold = fold
  }

  get state(): KernelState {
    return this.#fold.state
  }

  get agent(): ResolvedAgent {
    return this.environment.registry.agent(this.state.agent)
  }

  async run(): Promise<void> {
    await this.catchUp()
    const { clock, limits } = this.environment
    if (this.head.attempts > limits.drainAttempts) return failStuck(this)
    for (;;) {
      const { agent, epoch } = this
      const action = next(this.state, { agent, epoch, now: clock.now(), limits })
      if (this.#mustLeave(action)) return
      if (action.type !== 'park') await this.#perform(action)
      else if (await park(this, action)) return
    }
  }

  /**
   * Whether the drain has to end without performing the action. After a stop or a termination only closing
   * and parking still happen, and after a shutdown nothing, because other actions would be aborted at once.
   */
  #mustLeave({ type }: KernelAction): boolean {
    if (!this.signal.aborted) return false
    const isClosing = type === 'close' || type === 'park' || type === 'cascade'
    return !(isClosing && isStop(this.signal.reason))
  }

  #perform(action: Exclude<KernelAction, { type: 'park' }>): Promise<void> {
    switch (action.type) {
      case 'cascade':
        return cascade(this, action.references)
      case 'close':
        return close(this, action.outcome)
      case 'settle_in_doubt':
        return settleInDoubt(this, action.calls)
      case 'expire':
        return expire(this, action.interruptId)
      case 'boot_child':
        return bootChild(this, action.requestId)
      case 'run_effect':
        return runEffect(this, action.effectId)
      case 'settle_effect':
        return settleEffect(this, action.effectId)
      case 'activate':
        return activate(this)
      case 'begin_session':
        return beginSession(this, action.side)
      case 'infer':
        return infer(this, action.side)
      case 'run_agent':
        return runStrategy(this, action.side)
      case 'run_calls':
        return runCalls(this, action.side, action.entry)
      case 'end_step':
        return endStep(this, action.side, action.decision)
    }
  }

  at(): string {
    return new Date(this.environment.clock.now()).toISOString()
  }

  /**
   * Writes a commit after all earlier commits have finished, so that the governor's records become durable in
   * the order in which it made them.
   */
  commit(point: string, write: Write): Promise<void> {
    const committed = this.#last.then(() => this.#commit(point, write))
    this.#last = committed.catch(() => undefined)
    return committed
  }

  async #commit(point: string, write: Write): Promise<void> {
    const { clock } = this.environment
    const governance = write.governance ?? this.#openGovernor?.takeWrites()
    const written = this.#redacted([...(write.events ?? []), ...(governance?.events ?? [])])
    const events = written.map(asStored)
    let { wake } = write
    // While a drain works, its thread is marked as due, so that after a crash the next start of the runtime
    // finds the thread even if nothing else has woken it.
    if (!wake && !this.#isDue && (this.head.wakeAt ?? Infinity) > clock.now()) {
      this.#isDue = true
      wake = { by: clock.now() }
    }
    const own: ThreadChange = {
      id: this.head.id,
      fence: this.epoch,
      append: events,
      head: write.isProgress ? { ...write.head, attempts: 0 } : write.head,
      wake,
      expectSeq: write.expectsNoMail ? this.state.seq : undefined,
    }
    const result = await this.#write({
      point,
      threads: [own, ...this.#redacted(write.others ?? [])],
      blobs: [...(write.blobs ?? []), ...(governance?.blobs ?? [])],
      audit: governance?.audit,
      spent: governance?.spent,
    })
    const last = result.seqs.get(this.head.id) ?? this.state.seq
    if (last !== this.state.seq + events.length) return this.catchUp()
    for (const event of events) this.#fold.push({ seq: this.state.seq + 1, event })
  }

  async #write(commit: Commit): Promise<CommitResult> {
    try {
      return await this.environment.commit(commit)
    } catch (error) {
      // The open governor contains decisions that were not written to the log, so it is dropped and later
      // opened again from the log.
      this.dropGovernor()
      this.isFenced ||= isStoreError(error, 'FENCED')
      throw error
    }
  }

  #redacted<T>(value: T): T {
    return this.redactor()?.json(value) ?? value
  }

  /** Reads and folds the events that other writers have appended to the log. */
  async catchUp(): Promise<void> {
    for (;;) {
      const events: readonly StoredEvent[] = await this.environment.store.events(this.head.id, {
        after: this.state.seq,
        limit: 1_000,
      })
      for (const stored of events) this.#fold.push(stored)
      if (events.length < 1_000) return
    }
  }

  env(side: ResolvedSide, tool?: PromptToolConfig): EnvReader {
    const { instanceEnv, vault } = this.environment
    return createEnvReader({
      kernel: this.state,
      agent: this.agent,
      side: side.side,
      instanceEnv,
      vault,
      threadId: this.head.id,
      toolEnv: tool?.env,
    })
  }

  hide(secrets: readonly string[]): void {
    for (const secret of secrets) this.#hidden.add(secret)
  }

  redactor(): Redactor | undefined {
    const key = `${this.state.envSeq} ${this.#hidden.size} ${this.state.agent}`
    if (this.#redactor?.key === key) return this.#redactor.redactor
    const secrets = new Set([...this.#hidden, ...this.#secrets()])
    const redactor = secrets.size > 0 ? this.environment.vault.redactor(secrets) : undefined
    this.#redactor = { key, redactor }
    return redactor
  }

  /**
   * Returns the secret values of the thread. If its agent is no longer defined, only the thread's own secret
   * variables are returned.
   */
  #secrets(): readonly string[] {
    const { registry, vault } = this.environment
    const agent = registry.agents.get(this.state.agent)
    if (agent) return this.env(agent.a).secrets()
    return [...this.state.env].flatMap(([name, { type, value }]) =>
      type === 'secret' ? [vault.open(value, envContext(this.head.id, name))] : [],
    )
  }

  facade(side: ResolvedSide, use?: FacadeUse): Facade {
    return openFacade(this, side, use)
  }

  tools(side: ResolvedSide): readonly Tool[] {
    const { envSeq, values } = this.state
    const key = [side, envSeq, values.get(CLIENT_TOOLS)]
    if (!this.#tools || this.#tools.key.some((part, place) => part !== key[place]))
      this.#tools = { key, tools: toolsOf(this, side) }
    return this.#tools.tools
  }

  sideModel({ prompt }: ResolvedSide, options: { readonly system?: string } = {}): LLMInstance {
    const { clock, ids } = this.environment
    const { model, definition } = prompt.models[0]!
    const { config, providerOptions: params } = definition ?? {}
    return llm({ model, signal: this.signal, clock, ids, config, params, ...options })
  }

  governor(): Promise<SessionGovernor> {
    this.#governor ??= openGovernor(this).then((governor) => (this.#openGovernor = governor))
    return this.#governor
  }

  dropGovernor(): void {
    this.#governor = undefined
    this.#openGovernor = undefined
  }
}

/** Removes members that are undefined, as a store does, so that the fold sees the same event as the log. */
function asStored<T extends object>(event: T): T {
  const entries = Object.entries(event)
  if (entries.every(([, value]) => value !== undefined)) return event
  // The cast is safe, because only undefined members are removed.
  return Object.fromEntries(entries.filter(([, value]) => value !== undefined)) as T
}

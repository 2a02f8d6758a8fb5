import type { ResolvedAgent, ResolvedSide } from '../definitions/resolved.ts'
import type { PromptToolConfig } from '../definitions/types.ts'
import type { Drain } from '../dispatch/dispatcher.ts'
import { RuntimeError } from '../error.ts'
import type { StoredEvent } from '../event.ts'
import type { SessionGovernor } from '../governance/session-governors.ts'
import { createEnvReader, type EnvReader } from '../services/env-reader.ts'
import { envContext, type Redactor } from '../services/vault.ts'
import {
  isStoreError,
  type Claim,
  type Commit,
  type CommitResult,
  type ThreadChange,
  type ThreadHead,
} from '../store/store.ts'
import { bootChild, activate } from './act-activate.ts'
import { runCalls } from './act-calls.ts'
import { runEffect } from './act-effect.ts'
import { settleInDoubt } from './act-in-doubt.ts'
import { infer } from './act-infer.ts'
import { cascade, expire } from './act-cut.ts'
import { endStep } from './act-end-step.ts'
import { failStuck, park } from './act-park.ts'
import { beginSession } from './act-session.ts'
import { close } from './end-session.ts'
import { openGovernor } from './open-governor.ts'
import type { DrainContext, Facade, FacadeUse, Write } from './drain-context.ts'
import type { KernelEnvironment } from './environment.ts'
import { openFacade } from './open-facade.ts'
import { KernelFold } from './fold.ts'
import { isStop } from './interruption.ts'
import { next, type Action } from './next.ts'
import type { KernelState } from './state.ts'

/** Remembers folds between drains, so that each event is folded once while a thread is busy. */
export interface FoldMemory {
  take(threadId: string): KernelFold | undefined
  put(threadId: string, fold: KernelFold): void
}

/**
 * The drain of the kernel: claims a thread, folds its log, and performs one action after the other
 * until there is nothing to do. A drain that was fenced off ends quietly; another one has the thread.
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
      // Once it was fenced off, whatever else goes wrong in it follows from that.
      if (drain.isFenced || isStoreError(error, 'FENCED')) return
      if (isOfLaterVersion(error)) await takeBackClaim(environment, claim)
      throw error
    }
  }
}

function isOfLaterVersion(error: unknown): boolean {
  return error instanceof RuntimeError && error.code === 'LOG_VERSION'
}

/** The claim does not count: the program that can read the thread must not find it worn out. */
async function takeBackClaim(
  { commit }: KernelEnvironment,
  { head: { id, attempts }, epoch }: Claim,
): Promise<void> {
  const head = { attempts: attempts - 1 }
  await commit({ point: 'take_back_claim', threads: [{ id, fence: epoch, head }] })
}

class ThreadDrain implements DrainContext {
  readonly environment: KernelEnvironment
  readonly head: ThreadHead
  readonly epoch: number
  readonly signal: AbortSignal
  /** Another drain has the thread. */
  isFenced = false
  #isDue = false
  readonly #fold: KernelFold
  #governor: Promise<SessionGovernor> | undefined
  #openGovernor: SessionGovernor | undefined
  #last: Promise<void> = Promise.resolve()
  readonly #hidden = new Set<string>()
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
    const { limits } = this.environment
    if (this.head.attempts > limits.drainAttempts) return failStuck(this)
    for (;;) {
      const action = this.#next()
      if (this.#mustLeave(action)) return
      const isParked = await this.#perform(action)
      if (isParked) return
    }
  }

  #next(): Action {
    const { clock, limits } = this.environment
    return next(this.state, { agent: this.agent, epoch: this.epoch, now: clock.now(), limits })
  }

  /** After an abort nothing starts that would be aborted at once; closing and parking still happen. */
  #mustLeave({ type }: Action): boolean {
    if (!this.signal.aborted) return false
    const isClosing = type === 'close' || type === 'park' || type === 'cascade'
    if (isClosing && isStop(this.signal.reason)) return false
    return true
  }

  async #perform(action: Action): Promise<boolean> {
    switch (action.type) {
      case 'park':
        return park(this, action.wakeAt)
      case 'cascade':
        await cascade(this, action.references)
        return false
      case 'close':
        await close(this, action.outcome)
        return false
      case 'settle_in_doubt':
        await settleInDoubt(this, action.calls)
        return false
      case 'expire':
        await expire(this, action.interruptId)
        return false
      case 'boot_child':
        await bootChild(this, action.requestId)
        return false
      case 'run_effect':
        await runEffect(this, action.effectId)
        return false
      case 'activate':
        await activate(this)
        return false
      case 'begin_session':
        await beginSession(this, action.side)
        return false
      case 'infer':
        await infer(this, action.side)
        return false
      case 'run_calls':
        await runCalls(this, action.side, action.entry)
        return false
      case 'end_step':
        await endStep(this, action.side, action.decision)
        return false
    }
  }

  at(): string {
    return new Date(this.environment.clock.now()).toISOString()
  }

  /** One after the other, so that what the governor wrote first is durable first. */
  commit(point: string, write: Write): Promise<void> {
    const committed = this.#last.then(() => this.#commit(point, write))
    this.#last = committed.catch(() => undefined)
    return committed
  }

  async #commit(point: string, write: Write): Promise<void> {
    const writes = write.governance ?? this.#openGovernor?.takeWrites()
    const events = this.#redacted([...(write.events ?? []), ...(writes?.events ?? [])])
    const head = { ...write.head, ...(write.isProgress && { attempts: 0 }) }
    const wake = write.wake ?? this.#ownWake()
    const own: ThreadChange = {
      id: this.head.id,
      fence: this.epoch,
      append: events,
      ...(Object.keys(head).length > 0 && { head }),
      ...(wake && { wake }),
      ...(write.expectsNoMail && { expectSeq: this.state.seq }),
    }
    const blobs = [...(write.blobs ?? []), ...(writes?.blobs ?? [])]
    const result = await this.#write({
      point,
      threads: [own, ...this.#redacted(write.others ?? [])],
      ...(blobs.length > 0 && { blobs }),
      ...(writes && writes.audit.length > 0 && { audit: writes.audit }),
      ...(writes && writes.spent.length > 0 && { spent: writes.spent }),
    })
    const last = result.seqs.get(this.head.id) ?? this.state.seq
    if (last !== this.state.seq + events.length) return this.catchUp()
    for (const event of events) this.#fold.push({ seq: this.state.seq + 1, event })
  }

  /** A thread that is worked on is due, or a crash would leave it lying: also one that nobody asked to wake. */
  #ownWake(): ThreadChange['wake'] {
    const now = this.environment.clock.now()
    if (this.#isDue || (this.head.wakeAt ?? Infinity) <= now) return undefined
    this.#isDue = true
    return { by: now }
  }

  /** After a refusal the governor knows more than the log does, and is opened again from it. */
  async #write(commit: Commit): Promise<CommitResult> {
    try {
      return await this.environment.commit(commit)
    } catch (error) {
      this.dropGovernor()
      this.isFenced ||= isStoreError(error, 'FENCED')
      throw error
    }
  }

  #redacted<T>(value: T): T {
    return this.redactor()?.json(value) ?? value
  }

  /** Folds what others have appended. */
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
      ...(tool?.env && { toolEnv: tool.env }),
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

  /** A thread whose agent is gone still has what it was given. */
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

  governor(): Promise<SessionGovernor> {
    this.#governor ??= openGovernor(this).then((governor) => (this.#openGovernor = governor))
    return this.#governor
  }

  dropGovernor(): void {
    this.#governor = undefined
    this.#openGovernor = undefined
  }
}

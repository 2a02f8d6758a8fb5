import type { Tool } from '@skein/ai'
import { openGovernor } from '../calls/session-governor.ts'
import { CLIENT_TOOLS, toolsOf } from '../calls/tool-list.ts'
import { hasUnnotedChildren } from '../children/child-list.ts'
import { LogWriter, type WrittenThread } from '../commit/log-writer.ts'
import type { DrainContext, Facade, FacadeUse } from '../context/drain-context.ts'
import type { KernelEnvironment } from '../context/environment.ts'
import type { Write } from '../context/write.ts'
import type { RuntimeEvent } from '../contract/event.ts'
import type { ResolvedAgent, ResolvedSide } from '../definitions/resolved.ts'
import type { PromptToolConfig } from '../definitions/prompt-definition.ts'
import type { GovernanceWrites, SessionGovernor } from '../governance/session-governor.ts'
import type { KeptLease } from '../recovery/lease.ts'
import type { Redactor } from '../secrets/vault.ts'
import { asTold } from '../children/tell-parent.ts'
import { missingHere, waitsForAgent } from '../recovery/missing-agent.ts'
import type { KernelFold } from '../state/fold.ts'
import { type KernelState, registryOf } from '../state/kernel-state.ts'
import type { ThreadHead } from '../store/head.ts'
import { DrainTrace } from '../telemetry/drain-trace.ts'
import { openFacade } from '../thread/open-facade.ts'
import { createEnvReader, type EnvReader, threadSecrets } from '../thread/env.ts'
import type { KernelAction } from '../state/kernel-action.ts'
import { next } from './next.ts'

/** What one drain keeps of its thread besides the folded state: what its agent, user code and governor need. */
export class ThreadContext implements DrainContext, WrittenThread {
  readonly #environment: KernelEnvironment
  /** The environment with the definitions of the previous version, which sessions that began with them still use. */
  #previous: KernelEnvironment | undefined
  readonly head: ThreadHead
  readonly epoch: number
  readonly signal: AbortSignal
  readonly trace: DrainTrace | undefined
  readonly writer: LogWriter
  readonly onProgress: () => void
  #governor: Promise<SessionGovernor> | undefined
  #openGovernor: SessionGovernor | undefined
  readonly #hidden = new Set<string>()
  #redactor: { readonly key: string; readonly redactor: Redactor | undefined } | undefined
  #tools: { readonly key: readonly unknown[]; readonly tools: readonly Tool[] } | undefined
  #time = { ms: NaN, text: '' }

  constructor(
    environment: KernelEnvironment,
    {
      lease,
      fold,
      onProgress,
    }: { readonly lease: KeptLease; readonly fold: KernelFold; readonly onProgress: () => void },
  ) {
    this.#environment = environment
    this.head = lease.claim.head
    this.epoch = lease.claim.epoch
    this.signal = lease.signal
    this.onProgress = onProgress
    this.writer = new LogWriter(this, fold)
    const { telemetry } = environment
    this.trace = telemetry && new DrainTrace(telemetry, this.head, () => this.state)
  }

  // The thread as it is now

  get state(): KernelState {
    return this.writer.fold.state
  }

  /** The services of the runtime, with the definitions (current or previous) that the running session uses. */
  get environment(): KernelEnvironment {
    const { registry } = this.#environment
    if (!registry.previous || registryOf(registry, this.state) === registry)
      return this.#environment
    this.#previous ??= { ...this.#environment, registry: registry.previous }
    return this.#previous
  }

  get agent(): ResolvedAgent {
    return this.environment.registry.agent(this.state.agent)
  }

  nextAction(): KernelAction {
    const { agent, epoch, environment } = this
    const { clock, limits } = environment
    return next(this.state, { agent, epoch, now: clock.now(), limits })
  }

  at(): string {
    const ms = this.environment.clock.now()
    // Events that are written together mostly have the same time, so the text of the last time is kept.
    if (ms !== this.#time.ms) this.#time = { ms, text: new Date(ms).toISOString() }
    return this.#time.text
  }

  // Writing

  commit(point: string, write: Write): Promise<void> {
    return this.writer.commit(point, write)
  }

  catchUp(): Promise<void> {
    return this.writer.catchUp()
  }

  /** Returns the event which says that the thread works again after it has waited for its agent to be defined. */
  eventsBefore(point: string): readonly RuntimeEvent[] {
    if (point === 'await_agent' || !waitsForAgent(this.state)) return []
    if (missingHere(this.state, this.environment)) return []
    return [{ type: 'status_changed', at: this.at(), status: 'running', ...asTold(this.state) }]
  }

  // Variables and secrets

  env(side: ResolvedSide, tool?: PromptToolConfig, agent: ResolvedAgent = this.agent): EnvReader {
    const { instanceEnv, vault } = this.environment
    return createEnvReader({
      kernel: this.state,
      agent,
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
    const secrets = new Set([...this.#hidden, ...threadSecrets(this.environment, this.state)])
    const redactor = secrets.size > 0 ? this.environment.vault.redactor(secrets) : undefined
    this.#redactor = { key, redactor }
    return redactor
  }

  // User code and its tools

  facade(side: ResolvedSide, use?: FacadeUse): Facade {
    return openFacade(this, side, use)
  }

  tools(side: ResolvedSide): readonly Tool[] {
    const { envSeq, values } = this.state
    // The tool that lists children is there only while there are many.
    const key = [side, envSeq, values.get(CLIENT_TOOLS), hasUnnotedChildren(this.state)]
    if (!this.#tools || this.#tools.key.some((part, place) => part !== key[place]))
      this.#tools = { key, tools: toolsOf(this, side) }
    return this.#tools.tools
  }

  runUserCode<T>({ id, kind, name }: Parameters<DrainContext['runUserCode']>[0], work: () => T): T {
    const { watchdog } = this.environment
    const code = { kind, name, threadId: this.head.id }
    const guardedWork = watchdog ? () => watchdog.run(code, work) : work
    return this.trace ? this.trace.run(id, guardedWork) : guardedWork()
  }

  // The governor, which judges calls

  governor(): Promise<SessionGovernor> {
    this.#governor ??= openGovernor(this).then((governor) => (this.#openGovernor = governor))
    return this.#governor
  }

  takeGovernance(): GovernanceWrites | undefined {
    return this.#openGovernor?.takeWrites()
  }

  dropGovernor(): void {
    this.#governor = undefined
    this.#openGovernor = undefined
  }
}

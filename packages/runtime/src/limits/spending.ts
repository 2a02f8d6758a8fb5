import {
  ErrorCode,
  isUPPError,
  type LLMRequest,
  type Middleware,
  type StreamEvent,
  type TokenUsage,
  UPPError,
} from '@skein/ai'
import { zeroUsage } from '@skein/ai/engine'
import { modelCatalog } from '@skein/ai/catalog'
import { findModel, tokenCost } from '@skein/ai/middleware'
import { RuntimeError } from '../contract/error.ts'
import type { LimitsReport, SpendingRule } from '../contract/operator-limits.ts'
import { costOf } from '../contract/usage.ts'
import { tellsCost } from '../definitions/load/prices.ts'
import type { ResolvedModel, ResolvedSide } from '../definitions/resolved.ts'
import type { Timers } from '../dispatch/dispatcher.ts'
import { estimateViewTokens } from '../model/message-text.ts'
import { type CounterChange, isStoreError, type Store, type ThreadHead } from '../store/store.ts'

/** What is limited. Costs are counted in billionths of a dollar, because whole numbers add up exactly. */
const MEASURES = ['nanoUsd', 'tokens', 'inferences'] as const
type Measure = (typeof MEASURES)[number]
type Amounts = Readonly<Record<Measure, number>>

const NANO = 1e9

/** The tenant and the user that an inference is counted for. */
type Spender = Pick<ThreadHead, 'tenant' | 'owner'>

/** The counters of a tenant or user in one period, and the limits that hold for them. */
interface Account {
  readonly rule: SpendingRule
  readonly name: string
  readonly prefix: string
  readonly until: number
  readonly max: Partial<Amounts>
}

/** The amounts that a running inference has reserved in each account (counters of a tenant or user in one period). */
interface Reservation {
  /** The name of the counter in the store that records this reservation. */
  readonly record: string
  readonly held: readonly Held[]
  readonly inputTokens: number
}

interface Held {
  readonly account: Pick<Account, 'prefix' | 'max'>
  readonly amounts: Amounts
  /** What is counted as spent if the process dies: the input, which the vendor has read. The output is not known. */
  readonly lost: Amounts
}

/** How long an inference waits for other inferences to give back what they have reserved. */
const WAIT_MS = 30_000
/** How long a thread then waits before it tries again, if reservations of others still fill the limit. */
const LOOK_AGAIN_MS = 5 * 60_000
/** The number of output tokens that is reserved when neither the request nor the catalog of models has a limit. */
const DEFAULT_OUTPUT_TOKENS = 8192

/**
 * Limits what tenants and users spend on models in a period. Before an inference, the most that it can cost is
 * added to the counter `held` in the store, in a commit that is refused while a limit is reached; afterwards `held`
 * is corrected to the real cost, which is also added to `spent`. So a limit is exceeded by at most the inference
 * that was reserved last. Each reservation has a record in the store that names its thread: if the process dies,
 * the next process that works on the thread settles the reservation (docs/decisions/0021-reservations.md).
 */
export class SpendingLimits {
  readonly #rules: readonly SpendingRule[]
  readonly #store: Store
  readonly #timers: Timers
  readonly #waitMs: number
  readonly #report: (error: unknown) => void
  /** Functions of waiting inferences, called when another inference of this process has given back its reservation. */
  #waiting = new Set<() => void>()
  #records = 0

  constructor(options: {
    readonly rules: readonly SpendingRule[]
    readonly store: Store
    readonly timers: Timers
    /** An inference must wait for less than this time, or it would be aborted because its model sends nothing. */
    readonly modelIdleMs: number
    readonly report: (error: unknown) => void
  }) {
    this.#rules = options.rules
    this.#store = options.store
    this.#timers = options.timers
    this.#waitMs = Math.min(WAIT_MS, options.modelIdleMs / 2)
    this.#report = options.report
    for (const rule of options.rules) checkRule(rule)
  }

  /** Returns the middleware that reserves the most an inference can cost, and afterwards counts its real cost. */
  middleware(head: ThreadHead, side: ResolvedSide, model: ResolvedModel): Middleware {
    const reserve = (request: LLMRequest): Promise<Reservation> =>
      this.#reserve(head, { side, model, request })
    const settled = (reservation: Reservation, usage: TokenUsage): Promise<void> =>
      this.#settle(reservation, model, usage)
    return {
      name: 'spending',
      async *wrapInference(request, next) {
        const reservation = await reserve(request)
        let usage: TokenUsage | undefined
        let outputLength = 0
        let failure: unknown
        const settle = (): Promise<void> =>
          settled(reservation, usage ?? cutUsage(outputLength, reservation, failure))
        // A provider that ignores the abort signal may never return, so an aborted inference is settled at once.
        let ended: Promise<void> | undefined
        const cut = (): void => void (ended ??= settle())
        try {
          request.signal.addEventListener('abort', cut, { once: true })
          for await (const events of next(request)) {
            for (const event of events)
              if (event.type === 'message_stop') usage = event.delta.usage
              else outputLength += lengthOf(event)
            yield events
          }
        } catch (error) {
          failure = error
          throw error
        } finally {
          request.signal.removeEventListener('abort', cut)
          await (ended ??= settle())
        }
      },
    }
  }

  /**
   * Settles the reservations that earlier processes, e.g. ones that died, have left behind for this thread. Called
   * each time work on a thread begins. A process that has lost the thread may still settle its reservations itself.
   */
  async settleLost({ id, epoch }: Pick<ThreadHead, 'id' | 'epoch'>): Promise<void> {
    for (const record of (await this.#store.counters(recordsOf(id))).keys()) {
      const { epoch: of, held } = parsedRecord(record)
      if (of >= epoch) continue
      await this.#settleOnce(
        record,
        this.#kept(held).flatMap((one) => settling(one, one.lost)),
      )
    }
  }

  /** Throws `SPENDING_LIMIT` if a limit is reached, so that a message is not queued until the next period. */
  async checkSend(spender: Spender): Promise<void> {
    const accounts = this.#accountsOf(spender).filter(({ rule }) => rule.newMessages !== 'queue')
    const full = await this.#full(accounts, 'spent')
    if (!full) return
    await this.#count(full, 'refused')
    throw limitError(full, full.until - this.#timers.now(), 'The message was not sent.')
  }

  /** Returns what one tenant or all, with their users, have spent and reserved in this period and the one before. */
  async report(tenant?: string): Promise<LimitsReport['spending']> {
    const found = new Map<string, Map<string, number>>()
    for (const [name, value] of await this.#store.counters(PREFIX)) {
      const { account, counter } = parsed(name)
      const values = found.get(account) ?? new Map<string, number>()
      found.set(account, values.set(counter, value))
    }
    return [...found].flatMap(([account, values]) => {
      const { who, periodMs, from } = parsed(account)
      const [per, of, user] = who
      if (tenant !== undefined && of !== tenant) return []
      const rules = this.#accountsOf({ tenant: of, owner: user ?? null }, from)
      const { max } = rules.find(({ prefix }) => prefix === account) ?? {}
      const sums = (kind: string): LimitsReport['spending'][number]['spent'] => ({
        costUsd: (values.get(`${kind} nanoUsd`) ?? 0) / NANO,
        tokens: values.get(`${kind} tokens`) ?? 0,
        inferences: values.get(`${kind} inferences`) ?? 0,
      })
      const [spent, held] = [sums('spent'), sums('held')]
      const by = user === undefined ? { per, tenant: of } : { per, tenant: of, user }
      const entry: LimitsReport['spending'][number] = {
        ...by,
        from: new Date(from).toISOString(),
        until: new Date(from + periodMs).toISOString(),
        spent,
        reserved: {
          costUsd: Math.max(0, Math.round((held.costUsd - spent.costUsd) * NANO)) / NANO,
          tokens: Math.max(0, held.tokens - spent.tokens),
          inferences: Math.max(0, held.inferences - spent.inferences),
        },
        max: present({
          costUsd: max?.nanoUsd === undefined ? undefined : max.nanoUsd / NANO,
          tokens: max?.tokens,
          inferences: max?.inferences,
        }),
        refused: values.get('refused') ?? 0,
        delayed: values.get('delayed') ?? 0,
      }
      return [entry]
    })
  }

  /** Removes the counters of periods that ended more than one period length ago. */
  async forget(): Promise<void> {
    const now = this.#timers.now()
    const accounts = [...(await this.#store.counters(PREFIX)).keys()]
    const records = [...(await this.#store.counters(RECORDS)).keys()]
    const old = [
      ...accounts.filter((name) => isForgotten(name, now)),
      ...records.filter((name) =>
        parsedRecord(name).held.every(({ account: { prefix } }) => isForgotten(prefix, now)),
      ),
    ]
    const counters = old.map((name): CounterChange => ({ name, add: null }))
    if (old.length > 0) await this.#commit('limit_forget', counters)
  }

  async #reserve(
    head: ThreadHead,
    asked: {
      readonly side: ResolvedSide
      readonly model: ResolvedModel
      readonly request: LLMRequest
    },
  ): Promise<Reservation> {
    const spender = await this.#spenderOf(head)
    const deadline = this.#timers.now() + this.#waitMs
    for (;;) {
      const accounts = this.#accountsOf(spender)
      const inputTokens = inputOf(asked.request)
      const lost = lostOf(asked.model, inputTokens)
      const held = accounts.map((account): Held => {
        return { account, amounts: estimate(account, { ...asked, inputTokens }), lost }
      })
      const record = recordOf(head, this.#records++, held)
      const settled = this.#nextSettled(deadline)
      try {
        const counters = [...held.flatMap(reserving), { name: record, add: -1 }]
        await this.#commit('limit_reserve', counters)
        settled.leave()
        return { record, held, inputTokens }
      } catch (error) {
        if (!isStoreError(error, 'LIMIT_REACHED')) {
          settled.leave()
          throw error
        }
      }
      const now = this.#timers.now()
      const full = await this.#full(accounts, 'spent')
      const busy = full ? undefined : await this.#full(accounts, 'held')
      if (full || (busy && now >= deadline)) {
        settled.leave()
        const account = (full ?? busy)!
        await this.#count(account, 'delayed')
        const waitMs = full ? full.until - now : Math.min(LOOK_AGAIN_MS, account.until - now)
        throw limitError(
          account,
          waitMs,
          full ? undefined : 'Other inferences have reserved the rest.',
        )
      }
      // If the limit is no longer reached, try again at once; otherwise wait until another inference ends.
      if (busy) await settled.promise
      settled.leave()
      asked.request.signal.throwIfAborted()
    }
  }

  async #settle(
    { record, held }: Reservation,
    model: ResolvedModel,
    usage: TokenUsage,
  ): Promise<void> {
    const costUsd = usage.totalTokens === 0 ? 0 : costOf(model, usage)
    const spentOf = ({ amounts }: Held): Amounts => ({
      // If the cost is not known, the amount that was reserved counts as spent.
      nanoUsd: costUsd === undefined ? amounts.nanoUsd : Math.ceil(costUsd * NANO),
      tokens: usage.totalTokens,
      inferences: 1,
    })
    try {
      const isFirst = await this.#settleOnce(
        record,
        this.#kept(held).flatMap((one) => settling(one, spentOf(one))),
      )
      // Another process took this one for dead and settled with an estimate: the difference to the real cost is added.
      if (!isFirst)
        await this.#commit(
          'limit_settle',
          this.#kept(held).flatMap((one) => correcting(one, spentOf(one))),
        )
    } catch (error) {
      // The reservation stays until work on the thread begins again: till then too much counts, never too little.
      this.#report(error)
    }
  }

  /** Leaves out what was reserved in periods whose counters are removed: there is nothing left to give back. */
  #kept(held: readonly Held[]): readonly Held[] {
    const now = this.#timers.now()
    return held.filter(({ account }) => !isForgotten(account.prefix, now))
  }

  /** Settles a reservation and returns true; returns false if another process has already settled it. */
  async #settleOnce(record: string, counters: readonly CounterChange[]): Promise<boolean> {
    try {
      // A record is a counter of -1. A removed one counts as 0, which is not below 0, so this commit is then refused.
      await this.#commit('limit_settle', [{ name: record, add: null, below: 0 }, ...counters])
    } catch (error) {
      if (isStoreError(error, 'LIMIT_REACHED')) return false
      throw error
    }
    const waiting = this.#waiting
    this.#waiting = new Set()
    for (const wake of waiting) wake()
    return true
  }

  /** Returns a promise that resolves when an inference of this process settles, after a second, or at the deadline. */
  #nextSettled(deadline: number): { readonly promise: Promise<void>; leave(): void } {
    let wake = (): void => {}
    const promise = new Promise<void>((resolve) => (wake = resolve))
    this.#waiting.add(wake)
    // No call tells when an inference of another process ends, so the counters are read again every second.
    const ms = Math.min(1_000, Math.max(0, deadline - this.#timers.now()))
    const timer = this.#timers.set(ms, wake)
    return {
      promise,
      leave: () => {
        this.#waiting.delete(wake)
        this.#timers.clear(timer)
      },
    }
  }

  /** Children have no owner of their own: what they spend counts for the owner of their root thread. */
  async #spenderOf(head: ThreadHead): Promise<Spender> {
    if (head.parentId === null || head.owner !== null) return head
    return { tenant: head.tenant, owner: (await this.#store.head(head.rootId))?.owner ?? null }
  }

  /**
   * Returns the accounts whose limits apply to a spender. A rule without `tenants` applies to the
   * tenants that no other rule with the same `per` and `periodMs` names.
   */
  #accountsOf({ tenant, owner }: Spender, now: number = this.#timers.now()): readonly Account[] {
    const accounts = new Map<string, Account>()
    for (const rule of this.#rules) {
      const { per, periodMs, tenants, maxCostUsd, maxTokens, maxInferences } = rule
      if (per === 'user' && owner === null) continue
      const isNamed = (one: SpendingRule): boolean =>
        one.per === per && one.periodMs === periodMs && one.tenants?.includes(tenant) === true
      if (tenants ? !tenants.includes(tenant) : this.#rules.some(isNamed)) continue
      const from = now - (now % periodMs)
      const who = per === 'user' ? [per, tenant, owner] : [per, tenant]
      const prefix = `${PREFIX}${periodMs} ${from} ${JSON.stringify(who)} `
      const known = accounts.get(prefix)?.max ?? {}
      const max = {
        nanoUsd: least(known.nanoUsd, maxCostUsd === undefined ? undefined : maxCostUsd * NANO),
        tokens: least(known.tokens, maxTokens),
        inferences: least(known.inferences, maxInferences),
      }
      const name = per === 'user' ? `The user "${owner}"` : `The tenant "${tenant}"`
      accounts.set(prefix, { rule, name, prefix, until: from + periodMs, max })
    }
    return [...accounts.values()]
  }

  /** Returns an account that has reached one of its limits; if several have, the one whose period ends last. */
  async #full(accounts: readonly Account[], kind: 'spent' | 'held'): Promise<Account | undefined> {
    let found: Account | undefined
    for (const account of accounts) {
      const values = await this.#store.counters(`${account.prefix}${kind} `)
      const isFull = MEASURES.some((measure) => {
        const max = account.max[measure]
        return max !== undefined && (values.get(`${account.prefix}${kind} ${measure}`) ?? 0) >= max
      })
      if (isFull && account.until > (found?.until ?? 0)) found = account
    }
    return found
  }

  async #count({ prefix }: Account, what: 'refused' | 'delayed'): Promise<void> {
    await this.#commit('limit_count', [
      { name: `${prefix}${what}`, add: 1 },
      { name: `limit total ${what}`, add: 1 },
    ])
  }

  /** Changes counters. With `isLazy`, no request waits for the disk; the change survives the death of the process. */
  async #commit(point: string, counters: readonly CounterChange[]): Promise<void> {
    await this.#store.commit({ point, isLazy: true, threads: [], counters })
  }
}

function present<T extends object>(members: T): T {
  const entries = Object.entries(members).filter(([, value]) => value !== undefined)
  return Object.fromEntries(entries) as T // only members that may be undefined are left out
}

function least(one: number | undefined, other: number | undefined): number | undefined {
  return one === undefined || other === undefined ? (one ?? other) : Math.min(one, other)
}

/** The names of all counters of what tenants and users spend begin with this text. */
const PREFIX = 'limit of '

/** Reads from the name of a counter to whom and to which period it belongs, and what it counts. */
function parsed(name: string): {
  readonly who: readonly [per: 'tenant' | 'user', tenant: string, user?: string]
  readonly periodMs: number
  readonly from: number
  readonly account: string
  readonly counter: string
} {
  const [periodMs, from] = name.slice(PREFIX.length).split(' ', 2)
  // The measure at the end of the name contains no bracket, so the last `]` ends the list of tenant and user.
  const end = name.lastIndexOf(']') + 1
  return {
    who: JSON.parse(name.slice(name.indexOf('['), end)), // `#accountsOf` wrote it
    periodMs: Number(periodMs),
    from: Number(from),
    account: name.slice(0, end + 1),
    counter: name.slice(end + 1),
  }
}

/** Whether the counters of this account may have been removed, because its period ended more than one period ago. */
function isForgotten(name: string, now: number): boolean {
  const { from, periodMs } = parsed(name)
  return from + 2 * periodMs <= now
}

/** The names of all records of reservations begin with this text. */
const RECORDS = 'limit kept '

function recordsOf(threadId: string): string {
  return `${RECORDS}${JSON.stringify(threadId)} `
}

/** Returns the name of the record of a reservation. The name contains everything that is needed to settle it. */
function recordOf(
  { id, epoch }: Pick<ThreadHead, 'id' | 'epoch'>,
  number: number,
  held: readonly Held[],
): string {
  const accounts = held.map(({ account: { prefix }, amounts, lost }) => [prefix, amounts, lost])
  return `${recordsOf(id)}${JSON.stringify([epoch, number, accounts])}`
}

function parsedRecord(name: string): { readonly epoch: number; readonly held: readonly Held[] } {
  type Stored = readonly [
    epoch: number,
    number: number,
    accounts: readonly [prefix: string, amounts: Amounts, lost: Amounts][],
  ]
  const [epoch, , accounts] = JSON.parse(name.slice(name.indexOf('" [') + 2)) as Stored // `recordOf` wrote it
  const held = accounts.map(([prefix, amounts, lost]): Held => {
    return { account: { prefix, max: {} }, amounts, lost }
  })
  return { epoch, held }
}

/** Returns what counts as spent for an inference whose process died: only its input is known. */
function lostOf({ price }: ResolvedModel, inputTokens: number): Amounts {
  const usage = { ...zeroUsage, inputTokens, totalTokens: inputTokens }
  const costUsd = price ? tokenCost(usage, price) : 0
  return { nanoUsd: Math.ceil(costUsd * NANO), tokens: inputTokens, inferences: 1 }
}

/** Replaces a reservation by what was spent. */
function settling({ account: { prefix }, amounts }: Held, spent: Amounts): CounterChange[] {
  return MEASURES.flatMap((measure): CounterChange[] => [
    { name: `${prefix}held ${measure}`, add: spent[measure] - amounts[measure] },
    { name: `${prefix}spent ${measure}`, add: spent[measure] },
  ])
}

/** Replaces the estimate that was counted for a process taken for dead by what was really spent. */
function correcting({ account: { prefix }, lost }: Held, spent: Amounts): CounterChange[] {
  return MEASURES.flatMap((measure) =>
    ['held', 'spent'].map((kind): CounterChange => {
      return { name: `${prefix}${kind} ${measure}`, add: spent[measure] - lost[measure] }
    }),
  )
}

function reserving({ account, amounts }: Held): CounterChange[] {
  return MEASURES.map((measure) => ({
    name: `${account.prefix}held ${measure}`,
    add: amounts[measure],
    below: account.max[measure],
  }))
}

/**
 * Estimates the most that an inference can cost: one token per three characters of input, and the
 * largest output that the request or the model allows. If only the vendor knows the price of the model,
 * the whole limit is reserved, so that inferences of that model run one after the other.
 */
function estimate(
  { max }: Account,
  {
    side,
    model,
    request,
    inputTokens,
  }: {
    readonly side: ResolvedSide
    readonly model: ResolvedModel
    readonly request: LLMRequest
    readonly inputTokens: number
  },
): Amounts {
  const outputTokens = outputOf(request, model)
  const totalTokens = inputTokens + outputTokens
  const cost =
    model.price && tokenCost({ ...zeroUsage, inputTokens, outputTokens, totalTokens }, model.price)
  if (cost === undefined && max.nanoUsd !== undefined && !tellsCost(side, model)) {
    const { provider, modelId } = model.model
    throw new UPPError(
      `The price of ${provider.name}/${modelId} is not known, and spending is limited.`,
      {
        code: ErrorCode.InvalidRequest,
        provider: provider.name,
        modality: 'llm',
        hint: 'Give inputPrice and outputPrice to defineModel, or the option prices to createRuntime.',
      },
    )
  }
  const nanoUsd = cost === undefined ? (max.nanoUsd ?? 0) : Math.ceil(cost * NANO)
  return { nanoUsd, tokens: totalTokens, inferences: 1 }
}

function inputOf({ messages, system = '', tools }: LLMRequest): number {
  const rest = tools.map(({ name, description, parameters }) => [name, description, parameters])
  const others = (system.length + JSON.stringify(rest).length) / 3
  return Math.ceil((estimateViewTokens(messages) * 4) / 3 + others)
}

/** The parameters by which vendors limit the tokens of an answer. */
const OUTPUT_PARAMS = [
  'max_tokens',
  'max_completion_tokens',
  'max_output_tokens',
  'maxOutputTokens',
]

function outputOf({ params, settings }: LLMRequest, { model, definition }: ResolvedModel): number {
  const { generationConfig } = params as {
    readonly generationConfig?: Readonly<Record<string, unknown>>
  }
  for (const source of [params, generationConfig ?? {}, settings ?? {}])
    for (const name of OUTPUT_PARAMS) {
      const value = (source as Readonly<Record<string, unknown>>)[name]
      if (typeof value === 'number' && value > 0) return value
    }
  const { provider, modelId } = model
  const known = findModel(modelCatalog, provider.name, modelId)?.limits?.outputTokens
  return definition?.capabilities?.maxOutputTokens ?? known ?? DEFAULT_OUTPUT_TOKENS
}

function lengthOf({ delta }: StreamEvent): number {
  const { text = '', argumentsJson = '' } = delta as {
    readonly text?: string
    readonly argumentsJson?: string
  }
  return text.length + argumentsJson.length
}

/**
 * Estimates the usage of an inference that ended without reporting it. If the vendor refused the request, it
 * did no work; if the answer was cut off, the vendor has read the input and written the text that had arrived.
 */
function cutUsage(
  outputLength: number,
  { inputTokens }: Reservation,
  failure: unknown,
): TokenUsage {
  const told = isUPPError(failure) ? failure.turn?.usage : undefined
  if (told && told.totalTokens > 0) return told
  const isRefused =
    isUPPError(failure) &&
    failure.code !== ErrorCode.Timeout &&
    failure.code !== ErrorCode.Cancelled
  if (isRefused && outputLength === 0) return zeroUsage
  const outputTokens = Math.ceil(outputLength / 3)
  return { ...zeroUsage, inputTokens, outputTokens, totalTokens: inputTokens + outputTokens }
}

function limitError({ name, until, max }: Account, waitMs: number, more?: string): RuntimeError {
  const limits = [
    max.nanoUsd !== undefined && `${max.nanoUsd / NANO} US dollars`,
    max.tokens !== undefined && `${max.tokens} tokens`,
    max.inferences !== undefined && `${max.inferences} requests`,
  ].filter((text) => text !== false)
  const message = `${name} may use ${limits.join(' and ')} of models until ${new Date(until).toISOString()}.`
  return new RuntimeError(more === undefined ? message : `${message} ${more}`, {
    code: 'SPENDING_LIMIT',
    hint: 'Wait until then, or ask the operator for a higher limit.',
    retryAfterMs: Math.max(1, waitMs),
  })
}

function checkRule(rule: SpendingRule): void {
  const { per, periodMs, maxCostUsd, maxTokens, maxInferences } = rule
  const limits = [maxCostUsd, maxTokens, maxInferences].filter((max) => max !== undefined)
  const isWhole = Number.isSafeInteger(periodMs) && periodMs >= 1_000
  const areLimits = limits.length > 0 && limits.every((max) => max >= 0)
  if ((per === 'tenant' || per === 'user') && isWhole && areLimits) return
  throw new RuntimeError(`The spending rule ${JSON.stringify(rule)} cannot be used.`, {
    code: 'INPUT_INVALID',
    hint: 'It needs per (tenant or user), periodMs of at least 1000, and maxCostUsd, maxTokens or maxInferences.',
  })
}

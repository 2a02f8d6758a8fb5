import { ErrorCode, isUPPError, type LLMRequest, type Middleware, type TokenUsage } from '@skein/ai'
import { zeroUsage } from '@skein/ai/engine'
import { highestCost, inputTokensOf, lengthOf } from './estimate-cost.ts'
import {
  MEASURES,
  NANO,
  type SpendingAccount,
  type Amounts,
  type Spender,
} from './spending-account.ts'
import { RECORDS, lostOf, parsedRecord, recordOf, recordsOf } from './spending-records.ts'
import { RuntimeError } from '../contract/error.ts'
import type { LimitsReport, SpendingRule } from '../contract/operator-limits.ts'
import { costOf } from '../contract/usage.ts'
import type { ResolvedModel, ResolvedSide } from '../definitions/resolved.ts'
import type { Timers } from '../dispatch/dispatcher.ts'
import type { CounterChange } from '../store/commit.ts'
import type { ThreadHead } from '../store/head.ts'
import { isStoreError } from '../store/store-error.ts'
import type { Store } from '../store/store.ts'

/** The amounts that a running inference has reserved in each account (counters of a tenant or user in one period). */
interface Reservation {
  /** The name of the counter in the store that records this reservation. */
  readonly record: string
  readonly held: readonly Held[]
  readonly inputTokens: number
}

/** What a reservation holds of one account. */
export interface Held {
  readonly account: Pick<SpendingAccount, 'prefix' | 'max'>
  readonly amounts: Amounts
  /** What is counted as spent if the process dies: the input, which the vendor has read. The output is not known. */
  readonly lost: Amounts
}

/** How long an inference waits for other inferences to give back what they have reserved. */
const WAIT_MS = 30_000

/** How long a thread then waits before it tries again, if reservations of others still fill the limit. */
const LOOK_AGAIN_MS = 5 * 60_000

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
    const settleReservation = (reservation: Reservation, usage: TokenUsage): Promise<void> =>
      this.#settle(reservation, model, usage)
    return {
      name: 'spending',
      async *wrapInference(request, next) {
        const reservation = await reserve(request)
        let usage: TokenUsage | undefined
        let outputLength = 0
        let failure: unknown
        const settle = (): Promise<void> =>
          settleReservation(reservation, usage ?? cutUsage(outputLength, reservation, failure))
        // A provider that ignores the abort signal may never return, so an aborted inference is settled immediately.
        let ending: Promise<void> | undefined
        const onAbort = (): void => void (ending ??= settle())
        try {
          request.signal.addEventListener('abort', onAbort, { once: true })
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
          request.signal.removeEventListener('abort', onAbort)
          await (ending ??= settle())
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
    const sumsByAccount = new Map<string, Map<string, number>>()
    for (const [name, value] of await this.#store.counters(PREFIX)) {
      const { account, counter } = parsed(name)
      const values = sumsByAccount.get(account) ?? new Map<string, number>()
      sumsByAccount.set(account, values.set(counter, value))
    }
    return [...sumsByAccount].flatMap(([account, values]) => {
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
      const inputTokens = inputTokensOf(asked.request)
      const lostAmounts = lostOf(asked.model, inputTokens)
      const holds = accounts.map((account): Held => {
        return {
          account,
          amounts: highestCost(account, { ...asked, inputTokens }),
          lost: lostAmounts,
        }
      })
      const record = recordOf(head, this.#records++, holds)
      const nextEnd = this.#nextSettled(deadline)
      try {
        const counters = [...holds.flatMap(reserving), { name: record, add: -1 }]
        await this.#commit('limit_reserve', counters)
        nextEnd.leave()
        return { record, held: holds, inputTokens }
      } catch (error) {
        if (!isStoreError(error, 'LIMIT_REACHED')) {
          nextEnd.leave()
          throw error
        }
      }
      const now = this.#timers.now()
      const full = await this.#full(accounts, 'spent')
      const busy = full ? undefined : await this.#full(accounts, 'held')
      if (full || (busy && now >= deadline)) {
        nextEnd.leave()
        const account = (full ?? busy)!
        await this.#count(account, 'delayed')
        const waitMs = full ? full.until - now : Math.min(LOOK_AGAIN_MS, account.until - now)
        throw limitError(
          account,
          waitMs,
          full ? undefined : 'Other inferences have reserved the rest.',
        )
      }
      // If the limit is no longer reached, try again immediately; otherwise wait until another inference ends.
      if (busy) await nextEnd.promise
      nextEnd.leave()
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
  #accountsOf(
    { tenant, owner }: Spender,
    now: number = this.#timers.now(),
  ): readonly SpendingAccount[] {
    const accounts = new Map<string, SpendingAccount>()
    for (const rule of this.#rules) {
      const { per, periodMs, tenants, maxCostUsd, maxTokens, maxInferences } = rule
      if (per === 'user' && owner === null) continue
      const isNamed = (one: SpendingRule): boolean =>
        one.per === per && one.periodMs === periodMs && one.tenants?.includes(tenant) === true
      if (tenants ? !tenants.includes(tenant) : this.#rules.some(isNamed)) continue
      const from = now - (now % periodMs)
      const who = per === 'user' ? [per, tenant, owner] : [per, tenant]
      const prefix = `${PREFIX}${periodMs} ${from} ${JSON.stringify(who)} `
      const limits = accounts.get(prefix)?.max ?? {}
      const max = {
        nanoUsd: least(limits.nanoUsd, maxCostUsd === undefined ? undefined : maxCostUsd * NANO),
        tokens: least(limits.tokens, maxTokens),
        inferences: least(limits.inferences, maxInferences),
      }
      const name = per === 'user' ? `The user "${owner}"` : `The tenant "${tenant}"`
      accounts.set(prefix, { rule, name, prefix, until: from + periodMs, max })
    }
    return [...accounts.values()]
  }

  /** Returns an account that has reached one of its limits; if several have, the one whose period ends last. */
  async #full(
    accounts: readonly SpendingAccount[],
    kind: 'spent' | 'held',
  ): Promise<SpendingAccount | undefined> {
    let full: SpendingAccount | undefined
    for (const account of accounts) {
      const values = await this.#store.counters(`${account.prefix}${kind} `)
      const isFull = MEASURES.some((measure) => {
        const max = account.max[measure]
        return max !== undefined && (values.get(`${account.prefix}${kind} ${measure}`) ?? 0) >= max
      })
      if (isFull && account.until > (full?.until ?? 0)) full = account
    }
    return full
  }

  async #count({ prefix }: SpendingAccount, what: 'refused' | 'delayed'): Promise<void> {
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
 * Estimates the usage of an inference that ended without reporting it. If the vendor refused the request, it
 * did no work; if the answer was cut off, the vendor has read the input and written the text that had arrived.
 */
function cutUsage(
  outputLength: number,
  { inputTokens }: Reservation,
  failure: unknown,
): TokenUsage {
  const usage = isUPPError(failure) ? failure.turn?.usage : undefined
  if (usage && usage.totalTokens > 0) return usage
  const isRefused =
    isUPPError(failure) &&
    failure.code !== ErrorCode.Timeout &&
    failure.code !== ErrorCode.Cancelled
  if (isRefused && outputLength === 0) return zeroUsage
  const outputTokens = Math.ceil(outputLength / 3)
  return { ...zeroUsage, inputTokens, outputTokens, totalTokens: inputTokens + outputTokens }
}

function limitError(
  { name, until, max }: SpendingAccount,
  waitMs: number,
  more?: string,
): RuntimeError {
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

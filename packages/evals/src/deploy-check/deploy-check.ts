import { canonicalJson, messageOf, sha256Hex, SkeinError } from '@skein/base'
import type { Registry, RuntimeOptions, Store } from '@skein/runtime'
import { addSpent, noUsage } from '../recorded/facts-of.ts'
import { readRecording } from '../recorded/read-recording.ts'
import { unpricedModels } from '../replay/model-prices.ts'
import { type PaidAnswer, replay } from '../replay/replay.ts'
import type { FirstDifference } from '../replay/replay-report.ts'
import type { CheckedThread, DeployGroup, DeployReport } from './deploy-report.ts'
import { ProgressFile } from './progress-file-node.ts'

/** Which threads are replayed, and what that may cost. */
export interface DeployCheckOptions {
  /** The store with the recorded threads. It is only read. */
  readonly store: Pick<Store, 'head' | 'list' | 'events' | 'blob'>
  /** The definitions to deploy. */
  readonly registry: Registry
  readonly runtime?: Pick<RuntimeOptions, 'policy' | 'limits' | 'env' | 'secretKey'>
  /** How many root threads, those that were active last. Default 100. */
  readonly last?: number
  readonly agent?: string
  readonly tenant?: string
  /** Only threads that were active since this time, in ms. */
  readonly since?: number
  /** How many threads are replayed at the same time. Default 4. */
  readonly concurrency?: number
  /**
   * The most that requests may cost in US dollars. No request is sent once the answers have cost this much; those that are
   * on their way then may exceed it. Rejects with `INPUT_INVALID` if a model has no price. Default: no limit.
   */
  readonly maxCostUsd?: number
  /** The most requests that may be sent. Default: no limit. */
  readonly maxRequests?: number
  /** Keeps what was done, so that a check which was killed continues and pays for no answer that it has twice. */
  readonly progress?: string
  /** Called after each thread. */
  readonly onThread?: (thread: CheckedThread, done: number, total: number) => void
  readonly signal?: AbortSignal
}

/**
 * Replays recorded threads on new definitions, and says what would change. Threads whose requests do not change cost
 * nothing, and no tool of the application runs.
 *
 *     const report = await deployCheck({ store: readSqliteStore('.skein/skein.db'), registry: next, last: 1000 })
 */
export async function deployCheck(options: DeployCheckOptions): Promise<DeployReport> {
  const {
    store,
    concurrency = 4,
    maxCostUsd = Infinity,
    maxRequests = Infinity,
    onThread,
    signal,
  } = options
  if (maxCostUsd !== Infinity) refuseUnpriced(options.registry)
  const threads = await threadsToCheck(options)
  const progress =
    options.progress === undefined
      ? undefined
      : await ProgressFile.open(options.progress, checkId(options))
  const doneOf = ({ id, seq }: ThreadToCheck): CheckedThread | undefined => {
    const before = progress?.done.get(id)
    return before?.seq === seq ? before : undefined
  }
  const checked: CheckedThread[] = threads.flatMap((thread) => doneOf(thread) ?? [])
  const budget = new Budget({ maxCostUsd, maxRequests }, checked)
  const left = threads.filter((thread) => !doneOf(thread))
  const check = async ({ id: threadId, seq }: ThreadToCheck): Promise<CheckedThread> => {
    let asked = 0
    let paid = noUsage
    try {
      const recorded = await readRecording(store, threadId)
      const report = await replay(recorded, {
        registry: options.registry,
        ...(options.runtime && { runtime: options.runtime }),
        ...(progress && { paid: progress.answersOf(threadId) }),
        mayAsk: () => {
          const may = budget.take()
          if (may) asked++
          return may
        },
        onPaid: (answer) => {
          if (answer.isKept) asked++
          paid = addSpent(paid, answer.spent)
          budget.charge(answer)
        },
      })
      const { original, end, first, requests, spent } = report
      return { original, seq, end, first, requests, spent }
    } catch (error) {
      const message = messageOf(error)
      const first: FirstDifference = {
        kind: 'fails',
        threadId,
        step: 0,
        summary: `cannot be replayed: ${message}`,
      }
      return {
        original: threadId,
        seq,
        end: { type: 'failed', message },
        first,
        requests: { recorded: 0, sent: asked },
        spent: paid,
      }
    }
  }
  const worker = async (): Promise<void> => {
    for (let next = left.shift(); next && !signal?.aborted; next = left.shift()) {
      const thread = await check(next)
      // A thread that the budget has cut is checked again when there is more budget; what it has paid for is kept.
      if (thread.end.type !== 'budget') await progress?.finish(thread)
      checked.push(thread)
      onThread?.(thread, checked.length, threads.length)
    }
  }
  try {
    await Promise.all(Array.from({ length: concurrency }, worker))
  } finally {
    await progress?.close()
  }
  return summaryOf(checked, threads.length)
}

/** Counts what may still be asked. */
class Budget {
  #requests: number
  #costUsd: number

  constructor(
    { maxCostUsd, maxRequests }: { readonly maxCostUsd: number; readonly maxRequests: number },
    done: readonly CheckedThread[],
  ) {
    this.#requests = maxRequests - done.reduce((sum, { requests }) => sum + requests.sent, 0)
    this.#costUsd = maxCostUsd - done.reduce((sum, { spent }) => sum + (spent.costUsd ?? 0), 0)
  }

  take(): boolean {
    if (this.#requests <= 0 || this.#costUsd <= 0) return false
    this.#requests--
    return true
  }

  /** Counts an answer. A request that was sent before a crash was not taken. */
  charge({ spent, isKept }: PaidAnswer): void {
    if (isKept) this.#requests--
    this.#costUsd -= spent.costUsd ?? 0
  }
}

interface ThreadToCheck {
  readonly id: string
  /** How many events it has. */
  readonly seq: number
}

function refuseUnpriced(registry: Registry): void {
  const names = unpricedModels(registry)
  if (names.length === 0) return
  const have = names.length === 1 ? 'has' : 'have'
  throw new SkeinError(
    `A limit in US dollars cannot hold, because ${names.join(', ')} ${have} no price.`,
    {
      code: 'INPUT_INVALID',
      hint: 'Give inputPrice and outputPrice to defineModel, or limit the number of requests.',
    },
  )
}

async function threadsToCheck({
  store,
  last = 100,
  agent,
  tenant,
  since = 0,
}: DeployCheckOptions): Promise<ThreadToCheck[]> {
  const found: ThreadToCheck[] = []
  for (let offset = 0; found.length < last; offset += PAGE) {
    const heads = await store.list({ parentId: null, agent, tenant, limit: PAGE, offset } as never) // absent filters are undefined
    for (const { id, updatedAt, seq, lifecycle } of heads)
      if (updatedAt >= since && seq > 1 && lifecycle !== 'erased' && found.length < last)
        found.push({ id, seq })
    if (heads.length < PAGE) break
  }
  return found
}

const PAGE = 500

/** Names a check by what decides about its results, so that a progress file is not continued with other definitions. */
function checkId({ registry, agent, tenant, since }: DeployCheckOptions): string {
  const agents = [...registry.agents.values()].map(({ name, hash }) => [name, hash]).toSorted()
  return sha256Hex(
    canonicalJson(JSON.parse(JSON.stringify([agents, agent ?? null, tenant ?? null, since ?? 0]))),
  )
}

function summaryOf(checked: readonly CheckedThread[], threads: number): DeployReport {
  const groups = new Map<string, DeployGroup & { examples: string[]; count: number }>()
  let same = 0
  let cut = 0
  let unknown = 0
  let spent = noUsage
  const requests = { recorded: 0, sent: 0 }
  for (const { original, first, end, ...one } of checked) {
    requests.recorded += one.requests.recorded
    requests.sent += one.requests.sent
    spent = addSpent(spent, one.spent)
    if (!first && end.type === 'done') {
      same++
      continue
    }
    if (end.type === 'budget') {
      if (!first) {
        unknown++
        continue
      }
      cut++
    }
    const kind = first?.kind ?? 'fails'
    const summary = first?.summary ?? (end.type === 'failed' ? end.message : end.type)
    const key = `${kind} ${summary}`
    const group = groups.get(key) ?? { kind, summary, count: 0, examples: [] }
    group.count++
    if (group.examples.length < MAX_EXAMPLES) group.examples.push(original)
    groups.set(key, group)
  }
  const sorted = [...groups.values()].toSorted(
    (a, b) => b.count - a.count || (a.summary < b.summary ? -1 : 1),
  )
  const unchecked = threads - checked.length + unknown
  return { threads, same, groups: sorted, cut, unchecked, requests, spent }
}

const MAX_EXAMPLES = 10

import type { ThreadInfo } from '../contract/thread-info.ts'
import { nextTurn } from '../store/next-turn.ts'
import type { ThreadHead, TreeUsage } from '../store/head.ts'
import { type ApiContext, headOf } from './api-context.ts'

/** Reads a thread for the API. Rejects with `THREAD_NOT_FOUND`. */
export async function infoOf(context: ApiContext, threadId: string): Promise<ThreadInfo> {
  const [info] = await threadInfos(context, [await headOf(context, threadId)])
  return info!
}

/** How many threads are converted before other work of the process gets its turn. */
const PAUSE_AFTER = 50

/** Converts heads to the form of the API, with tokens and costs summed over all descendants. */
export async function threadInfos(
  { store }: Pick<ApiContext, 'store'>,
  heads: readonly ThreadHead[],
): Promise<readonly ThreadInfo[]> {
  const infos: ThreadInfo[] = []
  for (let from = 0; from < heads.length; from += PAUSE_AFTER) {
    if (from > 0) await nextTurn()
    const some = heads.slice(from, from + PAUSE_AFTER)
    const usages = await store.subtreeUsage(some.map(({ id }) => id))
    infos.push(...some.map((head) => infoFrom(head, usages.get(head.id) ?? head)))
  }
  return infos
}

function infoFrom(head: ThreadHead, sum: TreeUsage): ThreadInfo {
  const { costUsd, unpriced, createdAt, updatedAt, wakeAt, ...others } = head
  const { lease: _, logId: __, change: ___, tools: ____, grantedUntil: _____, ...rest } = others
  return {
    ...rest,
    inputTokens: head.tokens - head.outputTokens,
    costUsd: unpriced > 0 ? null : costUsd,
    createdAt: timeText(createdAt),
    updatedAt: timeText(updatedAt),
    wakeAt: wakeAt === null ? null : timeText(wakeAt),
    tree: {
      tokens: sum.tokens,
      costUsd: sum.unpriced > 0 ? null : sum.costUsd,
      waiting: sum.waiting,
    },
  }
}

function timeText(ms: number): string {
  return new Date(ms).toISOString()
}

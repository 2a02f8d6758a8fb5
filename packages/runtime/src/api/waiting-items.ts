import { isPlainObject, type JsonValue } from '@skein/base'
import type { ApprovalRequest } from '@skein/governance'
import { findCall } from '../fold/calls.ts'
import type { KernelState, OpenInterrupt } from '../contract/state.ts'
import type { WaitingItem } from '../contract/runtime-api.ts'
import type { ThreadHead, ThreadQuery } from '../store/store.ts'
import type { ApiContext } from './api-context.ts'

const PAGE = 1000

/** Which waiting items are listed. */
export type WaitingQuery = Pick<ThreadQuery, 'tenant' | 'owner' | 'rootId' | 'limit'>

/** Everything that waits for a person or a client, the oldest first. */
export async function waitingItems(
  context: ApiContext,
  { limit = PAGE, ...query }: WaitingQuery = {},
): Promise<readonly WaitingItem[]> {
  const paths = new Paths(context)
  const items: WaitingItem[] = []
  for (let offset = 0; items.length < limit; offset += PAGE) {
    const heads = await context.store.list({
      ...query,
      isWaiting: true,
      sort: 'oldest',
      limit: PAGE,
      offset,
    })
    for (const head of heads) {
      const path = await paths.of(head)
      const thread = await context.folds.load(head.id)
      if (!thread || thread.state.terminated) continue
      const { state } = thread
      for (const open of openForPeople(state))
        items.push(toItem(context, { head, state, open, path }))
    }
    if (heads.length < PAGE) break
  }
  return items
    .toSorted((a, b) => (a.openedAt < b.openedAt ? -1 : a.openedAt > b.openedAt ? 1 : 0))
    .slice(0, limit)
}

/** Interrupts that a person or a client has to answer. */
export function openForPeople({ interrupts }: KernelState): readonly OpenInterrupt[] {
  return [...interrupts.values()].filter(
    ({ answer, interrupt: { kind } }) => !answer && (kind === 'approval' || kind === 'input'),
  )
}

interface Found {
  readonly head: ThreadHead
  readonly state: KernelState
  readonly open: OpenInterrupt
  readonly path: readonly string[]
}

function toItem({ registry }: ApiContext, { head, state, open, path }: Found): WaitingItem {
  const { interrupt, openedAt, expiresAt } = open
  const call = findCall(state, interrupt.toolCallId)?.call.call
  const toolName = call?.toolName ?? ''
  const risk = registry.tools.get(toolName)?.governance.risk
  const approval = interrupt.kind === 'approval' ? approvalOf(interrupt.request) : undefined
  return {
    threadId: head.id,
    rootId: head.rootId,
    interruptId: interrupt.id,
    toolCallId: interrupt.toolCallId,
    toolName,
    arguments: (call?.arguments ?? null) as JsonValue, // arguments of a call are JSON
    kind: interrupt.kind === 'approval' ? 'approval' : 'input',
    path,
    openedAt,
    expiresAt,
    risk,
    request: approval,
    question: approval ? undefined : ((interrupt.request ?? null) as JsonValue), // the log is JSON
  }
}

/** What has to be signed: the request of an interrupt, or its `approval`. */
export function approvalOf(request: unknown): ApprovalRequest | undefined {
  if (!isPlainObject(request)) return undefined
  if (typeof request['digest'] === 'string' && isPlainObject(request['action']))
    return request as unknown as ApprovalRequest // written by the governor; its marks were checked
  return approvalOf(request['approval'] ?? request['request'])
}

/** Agents from the root down, each thread looked up once. */
class Paths {
  readonly #context: ApiContext
  readonly #known = new Map<string, Promise<readonly string[]>>()

  constructor(context: ApiContext) {
    this.#context = context
  }

  of(head: ThreadHead): Promise<readonly string[]> {
    const known = this.#known.get(head.id) ?? this.#find(head)
    this.#known.set(head.id, known)
    return known
  }

  async #find({ agent, parentId }: ThreadHead): Promise<readonly string[]> {
    const parent = parentId === null ? undefined : await this.#context.store.head(parentId)
    return parent ? [...(await this.of(parent)), agent] : [agent]
  }
}

import type { ThreadChange } from './commit.ts'
import { calledTools, firstWordsIn, forkIn, grantEnd } from './head-from-events.ts'
import type { Lease, ThreadHead } from './head.ts'
import { labelText } from './storable-text.ts'
import type { RuntimeEvent } from '../contract/event.ts'

function changeLease(lease: Lease | null, change: ThreadChange['lease']): Lease | null {
  if (!lease || change === undefined) return lease
  switch (change) {
    case 'released':
      return null
    case 'cleared':
      return { ...lease, deaths: 0, survived: 0, isQuarantined: false }
    case 'quarantined':
      return { ...lease, isQuarantined: true }
    case 'survived':
      return { ...lease, survived: lease.survived + 1, isQuarantined: false }
  }
}

/** Returns the head after a change. `number` is the position of the change among those of all threads. */
export function changeHead(head: ThreadHead, change: ThreadChange, number: number): ThreadHead {
  const { append = [], head: patch = {}, raisesEpoch, wake } = change
  // Fields are picked one by one, so that a patch can set no other fields. Undefined means unchanged;
  // null is a value.
  const { agent, title, tags, owner, waiting, tokens, costUsd, unpriced, attempts } = patch
  const { outputTokens, cachedTokens } = patch
  return {
    ...head,
    agent: agent ?? head.agent,
    title: title === undefined ? head.title : title === null ? null : labelText(title),
    firstWords: head.firstWords ?? firstWordsIn(append),
    forkedFrom: head.forkedFrom ?? forkIn(append),
    tags: tags ? tags.map(labelText) : head.tags,
    tools: calledTools(head.tools, append),
    grantedUntil: grantEnd(head.grantedUntil, append),
    owner: owner === undefined ? head.owner : owner,
    lifecycle: patch.lifecycle ?? lifecycleAfter(head, change),
    waiting: waiting ?? head.waiting,
    tokens: tokens ?? head.tokens,
    outputTokens: outputTokens ?? head.outputTokens,
    cachedTokens: cachedTokens ?? head.cachedTokens,
    costUsd: costUsd ?? head.costUsd,
    unpriced: unpriced ?? head.unpriced,
    attempts: attempts ?? head.attempts,
    lease: changeLease(head.lease, change.lease),
    updatedAt: latest(head.updatedAt, append),
    seq: head.seq + append.length,
    change: number,
    epoch: head.epoch + (raisesEpoch ? 1 : 0),
    wakeAt: wake
      ? 'exactly' in wake
        ? wake.exactly
        : Math.min(head.wakeAt ?? Infinity, wake.by)
      : head.wakeAt,
  }
}

/** Events from outside that give an idle thread work, if their commit also sets a wake-up time. */
const GIVES_WORK: ReadonlySet<RuntimeEvent['type']> = new Set([
  'thread_created',
  'message_queued',
  'resume_requested',
  'interrupt_answered',
  'variables_provided',
] as const)

/**
 * Returns the lifecycle after a commit that does not set one. A thread at rest that gets work
 * becomes `queued`; the first commit of the process that works on it (with a `fence`) makes it
 * `running`; the commit that ends this work makes it `idle`, unless it sets another lifecycle.
 */
function lifecycleAfter(
  { lifecycle }: ThreadHead,
  { append = [], fence, wake }: ThreadChange,
): ThreadHead['lifecycle'] {
  switch (lifecycle) {
    case 'queued':
      if (wake && 'exactly' in wake) return 'idle'
      return fence === undefined || append.length === 0 ? lifecycle : 'running'
    case 'idle':
    case 'waiting':
    case 'stopped':
    case 'failed': {
      const isWoken = fence === undefined && wake !== undefined && 'by' in wake
      return isWoken && append.some(({ type }) => GIVES_WORK.has(type)) ? 'queued' : lifecycle
    }
    default:
      return lifecycle
  }
}

/**
 * Returns the head of a thread after its contents were erased; its agent, times and cost are kept. The owner and the
 * id that the client chose may name a person, so they go too.
 */
export function erasedHead(
  head: ThreadHead,
  skeleton: readonly { at: string }[],
  { logId, change }: Pick<ThreadHead, 'logId' | 'change'>,
): ThreadHead {
  return {
    ...head,
    owner: null,
    clientId: null,
    title: null,
    firstWords: null,
    tags: [],
    tools: [],
    grantedUntil: null,
    lifecycle: 'erased',
    waiting: 0,
    updatedAt: latest(head.updatedAt, skeleton),
    seq: skeleton.length,
    change,
    logId,
    // The epoch is raised, so that a process that still has the erased contents in memory cannot write them.
    epoch: head.epoch + 1,
    wakeAt: null,
    attempts: 0,
    lease: null,
  }
}

/** Returns the time of the latest event. It never goes back, and events without a valid time are ignored. */
function latest(before: number, events: readonly { readonly at: string }[]): number {
  const times = events.map(({ at }) => Date.parse(at)).filter((time) => time > before)
  return Math.max(before, ...times)
}

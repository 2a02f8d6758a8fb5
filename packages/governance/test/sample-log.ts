import { createLineWriter } from '../src/journal/line-writer.ts'
import type { JournalEntry } from '../src/journal/journal.ts'
import type { Actor, Outcome, RollbackAction, State } from '../src/contract/envelope.ts'
import type { JournalEvent } from '../src/journal/events.ts'

const hash = `sha256:${'ab'.repeat(32)}` as const
const agent: Actor = { type: 'agent', id: 'agent-1' }
const system: Actor = { type: 'system', id: 'governor' }
const rollback: RollbackAction = { type: 'tool_call', target: 'undo', payload: { id: 1 } }

interface Step {
  readonly state: State
  readonly outcome?: Outcome
  readonly event: JournalEvent
  readonly rollback?: RollbackAction
}

const read = { call: '1.0', tool: 'ledger', risk: 'read_only', args_hash: hash } as const
const write = {
  call: '1.1',
  tool: 'reverse_wire',
  risk: 'write_high_risk',
  args_hash: hash,
} as const

/** What a governor writes for one delivered request with a read and an approved write. */
export const steps: readonly Step[] = [
  {
    state: 'intake',
    event: {
      type: 'opened',
      data: {
        governor: 'g',
        task: 'wire',
        input_hash: hash,
        policy_hash: hash,
        depth: 0,
        limits: { depth: 3, ceiling: 'write_high_risk' },
      },
    },
  },
  { state: 'plan', event: { type: 'transition', data: { from: 'intake' } } },
  { state: 'execute', event: { type: 'transition', data: { from: 'plan' } } },
  {
    state: 'execute',
    outcome: 'success',
    event: {
      type: 'call_settled',
      data: { ...read, effect: 'none', evidence: { id: 'e1', type: 'tool_result', hash } },
    },
  },
  {
    state: 'execute',
    rollback,
    event: {
      type: 'review_requested',
      data: {
        ...write,
        review: 'r1',
        digest: hash,
        policy_hash: hash,
        quorum: 1,
        excluded: ['agent-1'],
        expires_at: '2026-01-01T00:10:00.000Z',
      },
    },
  },
  {
    state: 'execute',
    event: {
      type: 'review_answered',
      data: {
        review: 'r1',
        call: '1.1',
        digest: hash,
        answer: 'approved',
        approvers: [{ type: 'human', id: 'ana' }],
        tokens: ['t1'],
      },
    },
  },
  {
    state: 'execute',
    rollback,
    event: {
      type: 'call_started',
      data: { ...write, policy_hash: hash, review: 'r1', digest: hash },
    },
  },
  {
    state: 'execute',
    outcome: 'success',
    event: {
      type: 'call_settled',
      data: { ...write, effect: 'applied', evidence: { id: 'e2', type: 'tool_result', hash } },
    },
  },
  { state: 'verify', event: { type: 'transition', data: { from: 'execute' } } },
  {
    state: 'verify',
    outcome: 'success',
    event: {
      type: 'verified',
      data: {
        verifier: 'v',
        report: 'p1',
        report_hash: hash,
        evidence: ['e1', 'e2'],
        mechanical: true,
      },
    },
  },
  {
    state: 'deliver',
    outcome: 'success',
    event: { type: 'delivered', data: { hash, evidence: ['e1', 'e2'], reports: ['p1'] } },
  },
]

export function requestId(number: number): string {
  return `0190aaaa-0000-7000-8000-${number.toString(16).padStart(12, '0')}`
}

/** The entries of one request, of these steps. */
export function entriesOf(number: number, list: readonly Step[] = steps): JournalEntry[] {
  const request_id = requestId(number)
  const trace_id = (number + 1).toString(16).padStart(32, '0')
  const writer = createLineWriter({
    identity: { agent_id: 'agent-1', owner_id: 'bank', control_class: 'human-supervised' },
    request_id,
    trace_id,
    parent_trace_id: undefined,
  })
  return list.map(({ state, outcome = 'pending', event, rollback }, seq) => ({
    request_id,
    seq,
    line: writer({
      ...event,
      request_id,
      trace_id,
      seq,
      attempt: 1,
      state,
      outcome,
      actor: event.type === 'transition' ? system : agent,
      at: 1767225600000 + seq,
      ...(rollback && { rollback }),
    }),
  }))
}

/** The entries of several requests, woven into each other. */
export function wovenEntries(requests: number): JournalEntry[] {
  const all = Array.from({ length: requests }, (_, number) => entriesOf(number))
  return steps.flatMap((_, seq) => all.map((entries) => entries[seq]!))
}

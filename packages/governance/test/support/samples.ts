import type { Kind } from './normative.ts'

/** The smallest valid object of each kind, as the specification's text describes it. */
export const smallest: Readonly<Record<Kind, Readonly<Record<string, unknown>>>> = {
  envelope: {
    uaicp_version: '0.3',
    request_id: '7d2f1e2a-3d8a-4c4e-9a55-0c2f6a1b9e01',
    trace_id: 'trace-of-a-refund',
    state: 'verify',
    timestamp: '2026-03-14T09:26:53.589Z',
    identity: {
      agent_id: 'agent:shop/refunds',
      owner_id: 'org:shop',
      user_id: 'clerk-7',
      control_class: 'human-supervised',
    },
    outcome: 'pending',
  },
  evidence: {
    evidence_id: 'evidence-of-order-7',
    evidence_type: 'tool_result',
    source: 'find_order',
    hash: 'sha256:5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03',
    collected_at: '2026-03-14T09:26:53.589Z',
    payload: { order: 'O-7', paid: true },
  },
  report: {
    report_id: 'report-of-the-refund',
    request_id: '7d2f1e2a-3d8a-4c4e-9a55-0c2f6a1b9e01',
    status: 'pass',
    checks: [{ check_id: 'order_was_paid', result: 'pass', details: 'O-7 was paid' }],
    generated_at: '2026-03-14T09:26:54.000Z',
  },
}

/** A copy of the smallest object of this kind in which one member is missing. */
export function without(kind: Kind, member: string): Record<string, unknown> {
  return Object.fromEntries(Object.entries(smallest[kind]).filter(([name]) => name !== member))
}

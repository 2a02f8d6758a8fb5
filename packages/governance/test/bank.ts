import { type JsonValue, manualClock, type ManualClock, sequentialIds } from '@skein/base'
import {
  type ApprovalRequest,
  defineTaskClass,
  defineVerifier,
  type Governance,
  governed,
  type GovernedTool,
  governor,
  type Governor,
  type GovernorOptions,
  type Identity,
  type Policy,
  rules,
  type TaskClass,
} from '../src/index.ts'
import { approvals } from '../src/approvals/approvals.ts'
import { memoryLog, type MemoryLog } from '../src/audit/memory-log.ts'
import { generateKey, type PrivateJwk, type PublicJwk } from '../src/keys/keys.ts'
import { memorySpent } from '../src/contract/spent-store.ts'
import { type ApproveOptions, approve } from '../src/approvals/approval-token.ts'
import { assertive } from './support/assertive.ts'

export const identity: Identity = {
  agent_id: 'agent-1',
  owner_id: 'bank',
  user_id: 'uma',
  control_class: 'human-supervised',
}

/** What the tools did, in order. */
export type Effects = string[]

const schema = (...names: string[]): { type: string; properties: object; required: string[] } => ({
  type: 'object',
  properties: Object.fromEntries(names.map((name) => [name, { type: 'string' }])),
  required: names,
})

/** The functions of a bank, bare: whoever calls one has its effect. */
export function bareTools(
  effects: Effects,
): Record<'ledger' | 'note' | 'reverse' | 'reinstate' | 'broken', BareTool> {
  const tool = (name: string, field: string): BareTool => ({
    name,
    description: `${name} of the bank`,
    parameters: schema(field),
    run: (args) => {
      effects.push(`${name} ${String(args[field])}`)
      return { ok: true, [field]: args[field] ?? null }
    },
  })
  return {
    ledger: tool('ledger', 'account'),
    note: tool('note', 'text'),
    reverse: tool('reverse', 'wire'),
    reinstate: tool('reinstate', 'wire'),
    broken: {
      name: 'broken',
      description: 'fails',
      parameters: schema('x'),
      run: () => {
        throw new Error('the bank is closed')
      },
    },
  }
}

export interface BareTool {
  readonly name: string
  readonly description: string
  readonly parameters: ReturnType<typeof schema>
  readonly run: (args: Record<string, JsonValue>) => JsonValue
}

type Tier = Governance<Record<string, JsonValue>, JsonValue>

/** Governance of each tool of the bank. */
export const tiers: Record<keyof ReturnType<typeof bareTools>, Tier> = {
  ledger: { risk: 'read_only' },
  note: {
    risk: 'write_low_risk',
    rollback: () => ({ type: 'tool_call', target: 'note', payload: { text: 'void' } }),
  },
  reverse: {
    risk: 'write_high_risk',
    rollback: ({ wire }: Record<string, JsonValue>) => ({
      type: 'tool_call',
      target: 'reinstate',
      payload: { wire: wire ?? null },
    }),
  },
  reinstate: { risk: 'write_low_risk' },
  broken: { risk: 'read_only' },
}

export const policy: Policy = rules([
  {
    when: ({ tool, args }) => tool === 'note' && (args as { text?: string }).text === 'forbidden',
    effect: 'deny',
  },
  { when: ({ risk }) => risk === 'write_low_risk', effect: 'allow' },
  { when: ({ risk }) => risk === 'write_high_risk', effect: 'review' },
])

export interface Bank {
  readonly effects: Effects
  readonly tools: readonly GovernedTool[]
  readonly task: TaskClass
  readonly governor: Governor
  readonly log: MemoryLog
  readonly clock: ManualClock
  readonly privateJwk: PrivateJwk
  readonly publicJwk: PublicJwk
  /** A person's token for a request. */
  sign(request: ApprovalRequest, changes?: Partial<ApproveOptions>): Promise<string>
}

export interface BankOptions extends Partial<GovernorOptions> {
  /** The bank's tools, if not made here. */
  readonly tools?: (effects: Effects) => readonly GovernedTool[] | Promise<readonly GovernedTool[]>
}

/** A bank with its governor: everything counts up, so that two runs give the same log. */
export async function openBank(options: BankOptions = {}): Promise<Bank> {
  const { tools: makeTools = governedTools, ...rest } = options
  const effects: Effects = []
  const clock = manualClock(Date.UTC(2026, 0, 1, 12))
  const { publicJwk, privateJwk } = await generateKey()
  const log = memoryLog({ origin: 'bank' })
  const tools = await makeTools(effects)
  const task = defineTaskClass({
    name: 'wire-reversal',
    tools,
    needs: [{ type: 'tool_result', source: 'ledger' }],
    verifiers: [
      defineVerifier({
        id: 'has-ledger',
        timeoutMs: 1000,
        check: (evidence) => [
          { check_id: 'ledger', result: evidence.length > 0 ? 'pass' : 'fail' },
        ],
      }),
    ],
  })
  const count = sequentialIds()
  const bank = governor({
    id: 'governor.bank',
    audit: log,
    approvals: approvals({
      audience: 'governor.bank',
      issuers: { bank: { keys: [publicJwk], may: () => true } },
      spent: memorySpent({ clock }),
      clock,
    }),
    policy,
    clock,
    ids: () => `0190aaaa-0000-7000-8000-${count().padStart(12, '0')}`,
    ...rest,
  })
  return {
    effects,
    tools,
    task,
    governor: assertive(bank),
    log,
    clock,
    privateJwk,
    publicJwk,
    sign: (request, changes = {}) =>
      approve(request, {
        audience: 'governor.bank',
        issuer: 'bank',
        approver: 'ana',
        key: privateJwk,
        ttlMs: 60_000,
        clock,
        ...changes,
      }),
  }
}

export function governedTools(effects: Effects): GovernedTool[] {
  const bare = bareTools(effects)
  return Object.entries(tiers).map(([name, tier]) =>
    governed(bare[name as keyof typeof bare], tier),
  )
}

/** A log as a list of what happened, without what differs from run to run. */
export function shapeOf(lines: readonly string[]): string[] {
  return lines.map((line) => {
    const { state, outcome, metadata } = JSON.parse(line) as {
      state: string
      outcome: string
      metadata: Record<string, unknown>
    }
    const data = metadata['uaicp:data'] as {
      tool?: string
      call?: string
      effect?: string
      answer?: string
      reasons?: { code: string }[]
    }
    const parts = [
      metadata['uaicp:event'],
      state,
      outcome,
      data.tool,
      data.call,
      data.effect,
      data.answer,
      ...(data.reasons ?? []).map(({ code }) => code),
    ]
    return parts.filter((part) => part !== undefined).join(' ')
  })
}

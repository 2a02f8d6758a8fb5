import {
  type IdSource,
  type JsonObject,
  type JsonValue,
  manualClock,
  type ManualClock,
  randomIds,
  seededRandom,
} from '@skein/base'
import type { Admission, ApprovalRequest, RollbackAction } from '@skein/governance'
import { createApprovalSigner, type ApprovalSigner } from '../../src/governance/approval-signer.ts'
import { exportAudit, verifyAudit } from '../../src/governance/audit-export.ts'
import { type GovernanceKeys, memoryGovernanceKeys } from '../../src/governance/governance-keys.ts'
import {
  createSessionGovernors,
  type SessionGovernors,
  type SessionGovernorsOptions,
} from '../../src/governance/session-governors.ts'
import type { GovernedSession, SessionGovernor } from '../../src/governance/session-governor.ts'
import type { ResolvedAgent } from '../../src/definitions/resolved.ts'
import type { AgentTaskClass } from '../../src/definitions/agent-definition.ts'
import type { ToolDefinition } from '../../src/definitions/tool-definition.ts'
import type { RuntimeEvent } from '../../src/contract/event.ts'
import { memoryStore } from '../../src/store/memory-store.ts'
import type { Store } from '../../src/store/store.ts'

export const GOVERNOR = 'runtime.test'

/** A tool whose governance is of any arguments. */
export function toolOf(
  name: string,
  governance: Partial<Record<keyof ToolDefinition['governance'], unknown>> = {},
  run: (args: JsonValue) => unknown = () => ({ ok: true }),
): ToolDefinition {
  return {
    kind: 'tool',
    name,
    description: name,
    parameters: { type: 'object' },
    run: async (args) => run(args),
    governance: { risk: 'read_only', ...governance } as ToolDefinition['governance'],
  }
}

/** Rolls back by calling `undo_<name>`. */
export function undoBy(name: string): (args: JsonObject) => RollbackAction {
  return (payload) => ({ type: 'tool_call', target: `undo_${name}`, payload })
}

/** Governance looks at an agent's name and task class only. */
export function agentOf(taskClass?: AgentTaskClass): ResolvedAgent {
  const definition = { name: 'clerk', ...(taskClass && { taskClass }) }
  return { name: 'clerk', definition } as unknown as ResolvedAgent
}

export interface Kit {
  readonly store: Store
  readonly clock: ManualClock
  readonly ids: IdSource
  readonly keys: GovernanceKeys
  readonly signer: ApprovalSigner
  readonly session: GovernedSession
  /** As another process: nothing but the store connects them. */
  restart(changes?: Partial<SessionGovernorsOptions>): SessionGovernors
  open(changes?: Partial<GovernedSession>): Promise<SessionGovernor>
  /** One commit of the thread, with what the governor wrote. */
  commit(governor: SessionGovernor, append?: readonly RuntimeEvent[]): Promise<void>
  /** Admits and commits, as before a tool runs. */
  admit(governor: SessionGovernor, call: CallOf, token?: string): Promise<Admission>
  /** Signs as a person. */
  sign(request: ApprovalRequest, by?: string): Promise<string>
  events(): Promise<readonly RuntimeEvent[]>
  /** The log as entries: type and data. */
  entries(): Promise<readonly { readonly type: string; readonly data: JsonObject }[]>
  /** What an auditor says. */
  verify(): Promise<Awaited<ReturnType<typeof verifyAudit>>>
}

export interface CallOf {
  readonly id: string
  readonly tool: string
  readonly args?: JsonValue
}

export interface KitOptions {
  readonly tools: readonly ToolDefinition[]
  readonly taskClass?: AgentTaskClass
  readonly sessionId?: string
  readonly options?: Partial<SessionGovernorsOptions>
  readonly seed?: number
}

/** A thread with one session in a store of its own: manual time, seeded ids, known keys. */
export async function kit({ tools, taskClass, options, ...rest }: KitOptions): Promise<Kit> {
  const store = memoryStore()
  const clock = manualClock(Date.parse('2026-03-01T12:00:00Z'))
  const ids = randomIds({ random: seededRandom(rest.seed ?? 1) })
  const keys = memoryGovernanceKeys({ seed: 'test' })
  const signer = createApprovalSigner({ id: GOVERNOR, keys, clock, ids })
  const session: GovernedSession = {
    threadId: 'thread-1',
    rootId: 'thread-1',
    tenant: 'acme',
    owner: 'uma',
    agent: agentOf(taskClass),
    sessionId: rest.sessionId ?? 'session-1',
    input: 'go',
    tools,
  }
  await createThread(store, 'thread-1')
  const restart = (changes: Partial<SessionGovernorsOptions> = {}): SessionGovernors =>
    createSessionGovernors({
      id: GOVERNOR,
      store,
      clock,
      ids,
      keys,
      signer,
      ...options,
      ...changes,
    })
  const made: Kit = {
    store,
    clock,
    ids,
    keys,
    signer,
    session,
    restart,
    open: (changes) => restart().open({ ...session, ...changes }),
    async commit(governor, append = []) {
      const { events, ...writes } = governor.takeWrites()
      const threads = [{ id: 'thread-1', append: [...append, ...events] }]
      await store.commit({ point: 'test', threads, ...writes })
    },
    async admit(governor, { id, tool, args = {} }, token) {
      const answer = token === undefined ? undefined : { type: 'approve' as const, tokens: [token] }
      const admission = await governor.admit({ id, tool, args, turnId: 'turn-1' }, answer)
      await made.commit(governor)
      return admission
    },
    sign: (request, by = 'pat') => signer.signApproval(request, { by }),
    events: async () => (await store.events('thread-1')).map(({ event }) => event),
    entries: async () => (await store.audit('thread-1')).map(({ line }) => toEntry(line)),
    verify: async () =>
      verifyAudit(await exportAudit(store, 'thread-1', keys), { keys: [keys.log.jwk] }),
  }
  return made
}

export async function createThread(store: Store, id: string, rootId: string = id): Promise<void> {
  const create = {
    tenant: 'acme',
    owner: 'uma',
    agent: 'clerk',
    parentId: rootId === id ? null : rootId,
    rootId,
    title: null,
    tags: [],
    clientId: null,
    createdAt: 0,
  }
  await store.commit({ point: 'test', threads: [{ id, create }] })
}

/** The request to approve, or the test is over. */
export function requestOf(admission: Admission): ApprovalRequest {
  if (admission.type !== 'review') throw new Error(`expected a review, not ${admission.type}`)
  return admission.request
}

function toEntry(line: string): { type: string; data: JsonObject } {
  const { metadata } = JSON.parse(line) as { metadata: Record<string, JsonValue> }
  return { type: String(metadata['uaicp:event']), data: metadata['uaicp:data'] as JsonObject }
}

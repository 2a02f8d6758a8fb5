import type { MessageJSON } from '@skein/ai'
import type {
  StoredEvent,
  CostReport,
  CreateThread,
  ModelLog,
  ToolFailure,
  SendMessage,
  Sent,
  SessionResult,
  ThreadInfo,
  WaitingItem,
  ThreadLifecycle,
  FileStat,
  ScheduledEffect,
  StoredMessage,
} from '@skein/runtime'
import {
  type AuditPage,
  type ChildInfo,
  type ForkedThread,
  type ModelLogDetail,
  type StandingGrant,
  type ThreadGrants,
  type ThreadEnv,
  type VariablesRequest,
  type WaitingDetail,
  IF_BUSY,
  type UserValue,
} from '@skein/runtime/serving'
import type { ThreadView } from '@skein/runtime/view'
import type { AgentDetail, AgentSummary } from './agents.ts'
import type { ErrorBody } from './http-error.ts'
import {
  answer,
  anything,
  boolean,
  integer,
  label,
  arrayOf,
  mapOf,
  nullable,
  number,
  object,
  choice,
  outline,
  shape,
  string,
  maxText,
  eitherOf,
  type Shape,
  between,
} from '@skein/base/shape'

/** A message as a client sends it; its content is still unchecked JSON. */
export type MessageBody = Omit<SendMessage, 'content' | 'userId' | 'call'> & {
  readonly content?: readonly object[]
}

/** A client's request for a new thread. It names no tenant: the tenant is always that of the client. */
export type ThreadBody = Omit<CreateThread, 'tenant' | 'message'> & {
  readonly message?: string | MessageBody
}

/** A stored message as JSON; `messageFromJSON` of `@skein/ai` converts it to a message. */
export type WireMessage = Omit<StoredMessage, 'message'> & { readonly message: MessageJSON }

/** The types of the shapes in `SCHEMAS`, by name. The compiler checks each shape against its type. */
interface NamedTypes {
  readonly Error: ErrorBody
  readonly Thread: ThreadInfo
  readonly ForkedThread: ForkedThread
  readonly ThreadView: ThreadView
  readonly SendMessage: MessageBody
  readonly CreateThread: ThreadBody
  readonly Sent: Sent
  readonly Message: WireMessage
  readonly Event: StoredEvent['event']
  readonly StoredEvent: StoredEvent & { readonly isCut?: boolean }
  readonly Subagent: ChildInfo
  readonly File: FileStat
  readonly UserValue: UserValue
  readonly Variable: Awaited<ReturnType<ThreadEnv['list']>>[number]
  readonly VariablesRequest: VariablesRequest
  readonly Effect: ScheduledEffect
  readonly WaitingItem: WaitingItem
  readonly WaitingDetail: WaitingDetail
  readonly Grant: StandingGrant
  readonly ThreadGrant: Awaited<ReturnType<ThreadGrants['all']>>[number]
  readonly SessionResult: SessionResult
  readonly ModelLog: ModelLog
  readonly ModelLogDetail: ModelLogDetail
  readonly ToolFailure: ToolFailure
  readonly Cost: CostReport
  readonly Audit: AuditPage
  readonly Agent: AgentSummary
  readonly AgentDetail: AgentDetail
}

/** Creates a reference to the shape in `SCHEMAS` with this name. */
export function ref<Name extends keyof NamedTypes>(name: Name): Shape<NamedTypes[Name]> {
  return { $ref: `#/components/schemas/${name}` }
}

/** All lifecycles of threads. */
export const LIFECYCLES: readonly ThreadLifecycle[] = [
  'idle',
  'queued',
  'running',
  'waiting',
  'stopping',
  'stopped',
  'failed',
  'terminated',
  'erased',
]

/** The shape of a thread's lifecycle. */
export const lifecycle: Shape<ThreadLifecycle> = choice(...LIFECYCLES)

/** One of the two sides. */
export const side: Shape<'a' | 'b'> = choice('a', 'b')

/** Values of environment variables by name. */
export const textMap: Shape<Readonly<Record<string, string>>> = {
  type: 'object',
  propertyNames: { type: 'string', pattern: '^[A-Za-z_][A-Za-z0-9_]{0,127}$' },
  additionalProperties: maxText(65_536),
  maxProperties: 200,
}

/** Labels of a thread. */
export const tags: Shape<readonly string[]> = arrayOf(maxText(100), 50)

const sendMessage = shape({
  'text?': maxText(1_000_000),
  'content?': arrayOf(object, 200),
  'role?': choice('user', 'assistant'),
  'isSilent?': boolean,
  'attachments?': arrayOf(maxText(1024), 200),
  'metadata?': object,
  'messageId?': label(200),
  'model?': maxText(200),
  'settings?': object,
  'ifBusy?': choice(...IF_BUSY),
})

/** A time as ISO 8601 text in UTC. */
const time: Shape<string> = { type: 'string', format: 'date-time' }

/** The sums of a thread and all its descendants. */
const tree: Shape<ThreadInfo['tree']> = answer({
  tokens: number,
  costUsd: nullable(number),
  waiting: integer,
})

const amount: Shape<number> = { type: 'number', minimum: 0 }
const bounds = { 'maxTokens?': amount, 'maxCostUsd?': amount, 'maxDurationMs?': amount }

const thread = {
  id: string,
  tenant: string,
  owner: nullable(string),
  agent: string,
  parentId: nullable(string),
  rootId: string,
  title: nullable(string),
  firstWords: nullable(string),
  forkedFrom: nullable(answer({ threadId: string, messageId: nullable(string) })),
  tags: arrayOf(string),
  clientId: nullable(string),
  lifecycle,
  waiting: integer,
  tokens: number,
  inputTokens: number,
  outputTokens: number,
  cachedTokens: number,
  costUsd: nullable(number),
  createdAt: time,
  updatedAt: time,
  seq: integer,
  epoch: integer,
  wakeAt: nullable(time),
  attempts: integer,
  tree,
}

const modelLog = {
  logId: string,
  stepId: string,
  at: time,
  side,
  prompt: string,
  'toolCallId?': string,
  provider: string,
  model: string,
  attempt: integer,
  'durationMs?': number,
  'firstTokenMs?': number,
  'finishReason?': string,
  'usage?': object,
  'costUsd?': nullable(number),
  'error?': answer({ code: string, message: string, 'hint?': string }),
}

const waitingItem = {
  threadId: string,
  rootId: string,
  interruptId: string,
  toolCallId: string,
  toolName: string,
  arguments: anything,
  'sentArguments?': anything,
  kind: choice('approval', 'input', 'in_doubt', 'variables'),
  'effectId?': string,
  path: arrayOf(string),
  openedAt: time,
  'expiresAt?': time,
  'risk?': anything,
  'isIrreversible?': boolean,
  'request?': anything,
  'question?': anything,
  'variables?': arrayOf(
    answer({ name: string, type: choice('text', 'secret'), 'description?': string }),
  ),
}

const grant = {
  grantId: string,
  tool: string,
  risk: choice('write_low_risk', 'write_high_risk'),
  by: string,
  at: time,
  expiresAt: time,
  'reason?': string,
  status: choice('active', 'expired', 'revoked'),
  'revoked?': answer({ by: string, at: time }),
}

const agent = {
  name: string,
  'title?': string,
  'description?': string,
  'icon?': string,
  type: choice('ai_human', 'dual_ai'),
  variables: arrayOf(
    answer({
      name: string,
      type: choice('text', 'secret'),
      required: boolean,
      'description?': string,
    }),
  ),
}
const agentSide = { side, label: string, prompt: string, models: arrayOf(string) }
const toolKind = choice('tool', 'handoff', 'subagent', 'prompt')
const problem = answer({ subject: string, field: string, message: string, 'file?': string })

/** The shapes that several operations accept or return, by their name in the OpenAPI document. */
export const SCHEMAS: { readonly [Name in keyof NamedTypes]: Shape<NamedTypes[Name]> } = {
  Error: answer({
    error: answer({
      code: string,
      message: string,
      'hint?': string,
      'problems?': arrayOf(answer({ field: string, message: string })),
    }),
  }),
  Thread: answer(thread),
  ForkedThread: answer({
    ...thread,
    runsAgain: answer({
      modelCalls: integer,
      children: integer,
      calls: arrayOf(
        answer({
          toolName: string,
          count: integer,
          'risk?': choice('read_only', 'write_low_risk', 'write_high_risk'),
        }),
      ),
    }),
  }),
  ThreadView: outline({
    threadId: string,
    agent: string,
    createdAt: time,
    updatedAt: time,
    seq: integer,
    status: lifecycle,
    items: arrayOf(object),
    waiting: arrayOf(object),
    queued: arrayOf(object),
    children: arrayOf(object),
    usage: answer({
      inputTokens: number,
      outputTokens: number,
      costUsd: nullable(number),
      requests: integer,
      turns: integer,
    }),
    'tree?': tree,
    failures: arrayOf(object),
  }),
  SendMessage: sendMessage,
  CreateThread: shape({
    agent: maxText(200),
    'owner?': maxText(200),
    'title?': maxText(256),
    'tags?': tags,
    'clientId?': label(200),
    'env?': textMap,
    'secrets?': textMap,
    'values?': mapOf(anything),
    'metadata?': object,
    'budget?': shape({ ...bounds, 'tree?': shape(bounds) }),
    'message?': eitherOf(maxText(1_000_000), sendMessage),
  }),
  Sent: answer({ queueId: string, messageId: string, seq: integer }),
  Message: outline({
    id: string,
    message: answer({ id: string, type: choice('user', 'assistant', 'tool_result') }),
    side,
    isSilent: boolean,
    at: time,
    turnId: string,
    attachments: arrayOf(string),
    'subagentId?': string,
    'metadata?': object,
    'delivery?': choice('pending', 'refused', 'delivered'),
  }),
  Event: outline({ type: string, at: string }),
  StoredEvent: answer({ seq: integer, event: ref('Event'), 'isCut?': boolean }),
  Subagent: answer({
    reference: string,
    name: string,
    'title?': string,
    description: string,
    'resumable?': boolean,
    'blocking?': boolean,
    'threadName?': string,
    'spawnGroupId?': string,
    'createdAt?': time,
    status: string,
    'parentCommunication?': choice('implicit', 'explicit'),
    thread: nullable(answer(thread)),
  }),
  File: answer({
    path: string,
    mediaType: string,
    sizeBytes: integer,
    hash: string,
    writtenAt: time,
  }),
  UserValue: answer({ key: string, value: anything, version: integer, updatedAt: time }),
  Variable: answer({ name: string, type: choice('text', 'secret'), 'value?': string }),
  VariablesRequest: answer({
    requestId: string,
    required: arrayOf(string),
    missing: arrayOf(string),
    expiresAt: time,
    status: choice('open', 'provided', 'expired'),
  }),
  Effect: answer({
    id: string,
    name: string,
    args: anything,
    at: time,
    'cron?': string,
    'timeZone?': string,
    'key?': string,
    attempts: integer,
  }),
  WaitingItem: outline(waitingItem),
  WaitingDetail: outline({
    ...waitingItem,
    status: choice('waiting', 'decided', 'over'),
    sentence: string,
    undo: anything,
    evidence: arrayOf(
      answer({
        evidenceId: string,
        kind: string,
        at: time,
        'summary?': string,
        'toolCallId?': string,
      }),
    ),
    approvedBy: arrayOf(answer({ by: string, at: time })),
    'decision?': answer({
      type: string,
      at: time,
      'by?': string,
      'reason?': string,
      'changedTo?': string,
    }),
  }),
  Grant: answer(grant),
  ThreadGrant: answer({ ...grant, threadId: string, agent: string, title: nullable(string) }),
  SessionResult: outline({
    outcome: choice('completed', 'failed', 'stopped', 'terminated', 'waiting'),
    reason: string,
    text: string,
    'hint?': string,
    'data?': anything,
    attachments: arrayOf(string),
    waiting: arrayOf(ref('WaitingItem')),
    thread: ref('Thread'),
  }),
  ModelLog: answer(modelLog),
  ModelLogDetail: answer({
    ...modelLog,
    system: nullable(string),
    tools: arrayOf(object),
    params: object,
    messages: arrayOf(object),
    'messageId?': string,
  }),
  ToolFailure: answer({
    toolCallId: string,
    toolName: string,
    at: string,
    'code?': string,
    message: string,
    'hint?': string,
    'stack?': string,
  }),
  Cost: answer({
    threadId: string,
    tokens: number,
    costUsd: nullable(number),
    byModel: mapOf(answer({ tokens: number, costUsd: nullable(number), calls: integer })),
    byThread: mapOf(answer({ agent: string, tokens: number, costUsd: nullable(number) })),
  }),
  Audit: outline({
    tree: string,
    from: integer,
    lines: arrayOf(string),
    'nextCursor?': string,
    'checkpoint?': string,
    publicKey: object,
  }),
  Agent: answer({
    ...agent,
    sides: arrayOf(
      answer({
        ...agentSide,
        tools: arrayOf(answer({ name: string, kind: toolKind })),
      }),
    ),
  }),
  AgentDetail: outline({
    ...agent,
    sides: arrayOf(
      answer({
        ...agentSide,
        'text?': string,
        model: nullable(
          answer({
            name: string,
            'provider?': string,
            settings: object,
            'maxContextTokens?': integer,
          }),
        ),
        maxSteps: nullable(integer),
        stopsOnResponse: boolean,
        tools: arrayOf(
          answer({
            name: string,
            kind: toolKind,
            description: string,
            parameters: nullable(object),
            'risk?': string,
            'undo?': choice('yes', 'impossible', 'none'),
            'isClientSide?': boolean,
            'agent?': string,
            'isBlocking?': boolean,
            'isResumable?': boolean,
            'maxInstances?': integer,
          }),
        ),
      }),
    ),
    limits: answer({ maxSessionTurns: nullable(integer), budget: nullable(object) }),
    taskClass: nullable(string),
    'problems?': arrayOf(problem),
    'warnings?': arrayOf(problem),
  }),
}

/** Why a person decided so. */
export const decisionReason: Shape<string> = maxText(10_000)

/** How long, in ms, a grant may hold: the permission to use a tool without asking again. */
export const grantTime: Shape<number> = between(1000, 24 * 3_600_000)

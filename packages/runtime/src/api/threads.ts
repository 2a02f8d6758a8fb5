import type { JsonObject } from '@skein/base'
import type { UnknownThreadEvent } from '@skein/threads'
import { RuntimeError } from '../contract/error.ts'
import type { VariablesProvided } from '../contract/event.ts'
import type { CostReport, CostUsd, Threads, ThreadVariables } from '../contract/runtime-api.ts'
import { type KernelState, type PendingVariables } from '../state/kernel-state.ts'
import { waitingCount } from '../state/questions.ts'
import { modelLogs, rebuildRequest } from '../model/read-log.ts'
import { descendantsOf } from '../store/thread-head.ts'
import { envSet } from '../thread/env.ts'
import { childRegistry } from '../thread/facade.ts'
import { checkLabel, checkTags } from './labels.ts'
import { createApiContext, headOf, load, type ApiContext, type ApiEnvironment } from './api-context.ts'
import { editThread } from './edit-thread.ts'
import { infoOf, threadInfos } from './thread-info.ts'
import { effectsApi, envApi, filesApi, valuesApi } from './contents-api.ts'
import { grantsApi } from './grants-api.ts'
import { eraseThread, removeThread, resumeThread, stopThread, terminateThread } from './control.ts'
import { createThread, forkStoredThread } from './create-thread.ts'
import { requestedVariables } from './inbox.ts'
import { exportLines, importThread } from './import-thread.ts'
import { decodeCursor, encodeCursor } from '../contract/cursor.ts'
import { type AuditReader, wholeAudit } from '../governance/audit-export.ts'
import { messagesApi, sendMessage, unsendMessage } from './messages-api.ts'
import { changedThreads, runThread, settledThread } from './session-result.ts'

/** Creates the API of threads: everything that can be done with threads from outside. */
export function createThreads(environment: ApiEnvironment): Threads {
  const context = createApiContext(environment)
  const { store } = context
  return {
    create: async (thread) => infoOf(context, await createThread(context, thread)),
    get: (threadId) => infoOf(context, threadId),
    async byClientId(tenant, clientId, owner) {
      const head = await store.headByClientId(tenant, clientId, owner)
      return head && (await threadInfos(context, [head]))[0]
    },
    list: async (query = {}) => threadInfos(context, await store.list(query)),
    changes: (query) => changedThreads(context, query),
    totals: () => store.totals(),
    async update(threadId, { title, tags }) {
      if (title !== undefined) checkLabel(title, 'The title of the thread')
      if (tags !== undefined) checkTags(tags)
      await editThread(context, { threadId, point: 'update_thread' }, () => {
        if (title === undefined && tags === undefined) return { result: undefined }
        const at = context.at()
        const append = title === undefined ? [] : [{ type: 'thread_updated', at, title } as const]
        const head: { title?: string; tags?: readonly string[] } = {}
        if (title !== undefined) head.title = title
        if (tags !== undefined) head.tags = [...tags]
        return { result: undefined, change: { append, head } }
      })
      return infoOf(context, threadId)
    },
    send: (threadId, message) => sendMessage(context, threadId, message),
    unsend: (threadId, queueId) => unsendMessage(context, threadId, queueId),
    run: runThread.bind(undefined, context) as Threads['run'], // the type of the data is that of the agent's output
    settled: (threadId, options) => settledThread(context, threadId, options),
    stop: (threadId, options) => stopThread(context, threadId, options),
    resume: (threadId, options) => resumeThread(context, threadId, options),
    terminate: (threadId, options) => terminateThread(context, threadId, options),
    erase: (threadId, options) => eraseThread(context, threadId, options),
    remove: (threadId) => removeThread(context, threadId),
    ...messagesApi(context),
    children: async (threadId, options) =>
      childRegistry((await load(context, threadId)).state, options),
    async export(threadId) {
      const parts: string[] = []
      for await (const part of exportLines(context, threadId)) parts.push(part)
      return parts.join('')
    },
    exportLines: (threadId) => exportLines(context, threadId),
    import: async (lines, options) =>
      infoOf(context, (await importThread(context, lines, options)).id),
    async fork(threadId, options) {
      const { head, runsAgain } = await forkStoredThread(context, threadId, options)
      return { ...(await infoOf(context, head.id)), runsAgain }
    },
    files: filesApi(context),
    values: valuesApi(context),
    env: envApi(context),
    variables: variablesApi(context),
    effects: effectsApi(context),
    grants: grantsApi(context),
    ...logsApi(context),
  }
}

/** Creates the functions that read the whole log of a thread. */
function logsApi(
  context: ApiContext,
): Pick<Threads, 'events' | 'folded' | 'document' | 'logs' | 'failures' | 'log' | 'cost' | 'audit' | 'auditPage'> {
  const { store } = context
  const events: Threads['events'] = async (threadId, options) => {
    await headOf(context, threadId) // rejects when there is no such thread
    return store.events(threadId, options)
  }
  return {
    events,
    async folded(threadId) {
      const log = (await events(threadId)).map(({ event }) => event)
      const { foldThread } = await import('@skein/threads')
      return foldThread(log as unknown as Iterable<UnknownThreadEvent>) // every event is plain JSON
    },
    async document(threadId) {
      const log = await events(threadId)
      const { isThreadEvent } = await import('@skein/threads')
      const { threadFromEvents } = await import('@skein/threads/events')
      // The runtime's own events are internal and not part of the document.
      const history = log.flatMap(({ event }) => (isThreadEvent(event) ? [event] : []))
      return threadFromEvents(history, { includeRunning: true }).value
    },
    logs: async (threadId) => modelLogs(await events(threadId)),
    failures: async (threadId) =>
      (await events(threadId)).flatMap(({ event }) => {
        if (event.type !== 'tool_execution_end' || !event.cause) return []
        const { toolCallId, toolName, at, cause } = event
        return [{ toolCallId, toolName, at, ...cause }]
      }),
    log: async (threadId, logId) =>
      rebuildRequest(await events(threadId), logId, (hash) => store.blob(hash)),
    cost: (threadId) => costOf(context, threadId),
    async audit(threadId) {
      const { reader, rootId } = await auditOf(context, threadId)
      return wholeAudit(reader, rootId)
    },
    async auditPage(threadId, { cursor, limit = AUDIT_PAGE } = {}) {
      const { reader, rootId } = await auditOf(context, threadId)
      const [tree, from] =
        cursor === undefined
          ? [rootId, 0]
          : decodeCursor<[string, number]>(cursor, ['string', 'number'], 'an audit log')
      if (tree !== rootId || !Number.isSafeInteger(from) || from < 0)
        throw new RuntimeError('The cursor is of another audit log.', {
          code: 'INPUT_INVALID',
          hint: 'Pass the `nextCursor` of the page before, or none to begin.',
        })
      const count = Math.min(Math.max(Math.trunc(limit), 1), MOST_AUDIT_LINES)
      const { next, ...page } = await reader.page(rootId, { from, limit: count })
      return { ...page, nextCursor: next === undefined ? undefined : encodeCursor([rootId, next]) }
    },
  }
}

/** How many lines a page of an audit log has unless the caller says otherwise, and how many at most. */
const AUDIT_PAGE = 500
const MOST_AUDIT_LINES = 5000

async function auditOf(
  context: ApiContext,
  threadId: string,
): Promise<{ readonly reader: AuditReader; readonly rootId: string }> {
  const { rootId } = await headOf(context, threadId)
  if (context.audit) return { reader: context.audit, rootId }
  throw new RuntimeError(`There is no audit log of thread ${threadId}.`, {
    code: 'LOG_NOT_FOUND',
    hint: 'This runtime was created without governance.',
  })
}

/** Sums what a thread and its descendants have spent on models. */
async function costOf(context: ApiContext, threadId: string): Promise<CostReport> {
  const head = await headOf(context, threadId)
  const total: Spent = { tokens: 0, costUsd: 0 }
  const byModel: Record<string, Spent & { calls: number }> = {}
  const byThread: Record<string, Spent & { agent: string }> = {}
  for (const { id, agent } of [head, ...(await descendantsOf(context, head))]) {
    const own = (byThread[id] = { agent, tokens: 0, costUsd: 0 })
    const add = (
      usage: JsonObject | undefined,
      costUsd: CostUsd | undefined,
      ...sums: Spent[]
    ): void => {
      // Reasoning and cached tokens are already included in `input_tokens` and `output_tokens`.
      const tokens = Number(usage?.['input_tokens'] ?? 0) + Number(usage?.['output_tokens'] ?? 0)
      for (const sum of [total, own, ...sums]) {
        sum.tokens += tokens
        // One unknown cost makes the sum unknown.
        sum.costUsd = sum.costUsd === null || costUsd == null ? null : sum.costUsd + costUsd
      }
    }
    const log = await context.store.events(id)
    const requests = modelLogs(log)
    const logged = new Set(requests.map(({ logId }) => logId))
    // Threads that older versions have erased have answers without their requests.
    for (const { event } of log) {
      if (event.type !== 'model_answered' || logged.has(event.logId)) continue
      logged.add(event.logId)
      if (event.usage) add(event.usage, event.costUsd)
    }
    // Some costs, such as those of summaries, are recorded only as `usage_recorded`. An event whose request is
    // also in the log of requests is skipped, because the request is counted below.
    for (const { event } of log)
      if (event.type === 'usage_recorded' && !logged.has(event.logId ?? ''))
        add(event.usage as JsonObject, event.costUsd)
    for (const { provider, model, usage, costUsd } of requests) {
      const sum = (byModel[`${provider}/${model}`] ??= { tokens: 0, costUsd: 0, calls: 0 })
      sum.calls++
      // A request that failed before it used anything, or was not answered yet, costs nothing.
      add(usage, usage === undefined ? 0 : costUsd, sum)
    }
  }
  return { threadId, ...total, byModel, byThread }
}

interface Spent {
  tokens: number
  costUsd: CostUsd
}

/**
 * Creates the functions that read a request for missing variables and provide their values; the child that
 * needs them is created afterwards.
 */
function variablesApi(context: ApiContext): ThreadVariables {
  return {
    async get(threadId, requestId) {
      const { state } = await load(context, threadId)
      const { requested, provided } = find(state, requestId)
      const { required, missing, expiresAt } = requested
      const status = provided ? 'provided' : isExpired(context, expiresAt) ? 'expired' : 'open'
      return { requestId, required, missing, expiresAt, status }
    },
    async provide(threadId, requestId, values, { by } = {}) {
      const target = { threadId, point: 'provide_variables' }
      await editThread(context, target, ({ state }) => {
        const pending = find(state, requestId)
        checkProvided(context, pending, values)
        const event: VariablesProvided = {
          type: 'variables_provided',
          at: context.at(),
          requestId,
          values: sealed(context, state, pending, values),
          by,
        }
        const wake = { by: context.clock.now() }
        const head = { waiting: waitingCount(state, context.clock.now()) - 1 }
        return { result: undefined, change: { append: [event], head, wake } }
      })
      // The child is created by the process that works on the thread; this loop waits until that is done or
      // failed.
      for await (const _ of context.live.watch([threadId])) {
        const { state } = await load(context, threadId)
        const { reference, error } = find(state, requestId)
        if (reference !== undefined) return { reference }
        if (error !== undefined)
          throw new RuntimeError(`The child of request ${requestId} was not created: ${error}`, {
            code: 'INPUT_INVALID',
          })
        if (state.terminated) break
      }
      throw new RuntimeError(`Thread ${threadId} ended before it created the child.`, {
        code: 'THREAD_TERMINATED',
      })
    },
  }
}

function find({ variables, threadId }: KernelState, requestId: string): PendingVariables {
  const pending = variables.get(requestId)
  if (pending) return pending
  throw new RuntimeError(`Thread ${threadId} has no request ${requestId} for variables.`, {
    code: 'REQUEST_NOT_FOUND',
    hint: 'The request is named in the error of the call that needs the variables.',
  })
}

function isExpired({ clock }: ApiContext, expiresAt: string): boolean {
  return Date.parse(expiresAt) <= clock.now()
}

type Values = Readonly<Record<string, string>>

/** Throws unless the request is unanswered, not expired, and all required values are provided. */
function checkProvided(context: ApiContext, pending: PendingVariables, values: Values): void {
  const { requestId, required, missing, expiresAt } = pending.requested
  if (pending.provided)
    throw new RuntimeError(`The variables of request ${requestId} were provided before.`, {
      code: 'ALREADY_ANSWERED',
      hint: 'A request is answered once; the child was created from the first answer.',
    })
  if (isExpired(context, expiresAt))
    throw new RuntimeError(`The request ${requestId} expired at ${expiresAt}.`, {
      code: 'REQUEST_EXPIRED',
      hint: 'Let the agent call the tool again; that makes a new request.',
    })
  const absent = missing.filter((name) => !Object.hasOwn(values, name))
  if (absent.length > 0)
    throw new RuntimeError(`The request ${requestId} also needs ${absent.join(', ')}.`, {
      code: 'VARIABLES_MISSING',
      hint: 'Give all of them at once; nothing was stored.',
    })
  const unknown = Object.keys(values).filter((name) => !required.includes(name))
  if (unknown.length > 0)
    throw new RuntimeError(`The request ${requestId} does not ask for ${unknown.join(', ')}.`, {
      code: 'ENV_INVALID',
      hint: `It asks for ${required.join(', ')}.`,
    })
}

/**
 * Encrypts the values for this thread. When the child is created, they are decrypted, and encrypted again for
 * the child.
 */
function sealed(
  context: ApiContext,
  state: KernelState,
  { requested }: PendingVariables,
  values: Values,
): VariablesProvided['values'] {
  const { vault } = context
  const { threadId } = state
  const declared = requestedVariables(context, state, requested)
  // A variable that is declared as a secret, or not declared at all, is treated as a secret.
  const texts = new Set(declared.filter(({ type }) => type !== 'secret').map(({ name }) => name))
  return Object.fromEntries(
    Object.entries(values).map(([name, given]) => {
      const valueType = texts.has(name) ? ('text' as const) : ('secret' as const)
      const at = requested.at
      const { value } = envSet({ name, value: given, valueType, threadId, vault, at })
      return [name, { valueType, value: value ?? '' }]
    }),
  )
}

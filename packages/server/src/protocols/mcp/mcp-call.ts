import { isPlainObject, type JsonObject, tryParseJson } from '@skein/base'
import { type Runtime, type SessionResult, type WaitingItem, FOUND_EFFECTS } from '@skein/runtime'
import type { Call } from '../../operations/operation.ts'
import { accountOf } from '../../operations/principal.ts'
import type { TimerHandle } from '@skein/runtime/serving'
import type { Services } from '../../http/services.ts'
import { threadPartId, parseThreadPartId } from '../thread-part-id.ts'
import { mayAnswer, waitingForm, waitingText } from '../json-rpc/waiting-call.ts'
import { sharedText } from '../json-rpc/resting-result.ts'
import { withoutUndefined, type RpcId } from '../json-rpc/json-rpc.ts'

/** The part of a call that MCP uses. */
export type McpCall = Pick<
  Call,
  'request' | 'runtime' | 'principal' | 'services' | 'connection'
> & { readonly session: McpSession }

/** What a client said about itself when it opened its session. */
export interface McpSession {
  readonly id?: string
  /** Whether a person can be asked with a form. */
  readonly hasForms: boolean
  /** Whether a stream may begin with an event without data; older clients would parse it as JSON. */
  readonly hasEmptyEvents: boolean
}

/**
 * The place in the stream of a tool call. The id of every event contains it, so that a client can go on reading
 * from any server, also after a restart.
 */
export interface McpPosition {
  readonly threadId: string
  readonly id: RpcId
  readonly progressToken?: string | number
  /** Ids of the waiting calls about which the client has been asked. */
  readonly asked: readonly string[]
}

const MAX_ASKED = 100

/** Reads the id of an event; undefined when this server did not create it. */
export function parseEventId(eventId: string): McpPosition | undefined {
  const parts = parseThreadPartId('event', eventId)
  const value = parts && tryParseJson(parts.part)
  if (!parts || !isPlainObject(value)) return undefined
  const { id, progressToken, asked } = value as JsonObject // parsed from JSON
  if (typeof id !== 'string' && typeof id !== 'number') return undefined
  if (!Array.isArray(asked) || asked.length > MAX_ASKED) return undefined
  if (!asked.every((one) => typeof one === 'string')) return undefined
  return { threadId: parts.threadId, id, ...tokenOf(progressToken), asked }
}

/** Returns the value as a progress token if it can be one. */
export function tokenOf(token: unknown): { readonly progressToken?: string | number } {
  return typeof token === 'string' || typeof token === 'number' ? { progressToken: token } : {}
}

/**
 * Streams what belongs to a tool call until the thread is at rest: questions to a person, where the client
 * can show them, progress, and the response. Leaving the stream does not stop the thread.
 */
export async function* answerCall(
  call: McpCall,
  start: McpPosition,
  signal: AbortSignal,
): AsyncGenerator<string, void> {
  const { principal, services, runtime, session } = call
  const { threadId } = start
  const client = accountOf(principal)
  const open = mcpCallsOf(services).add(client, session.id, start)
  const own = AbortSignal.any([signal, open.signal])
  const ticks = new Ticks(services, start.progressToken)
  const closedIds = new Set<string>()
  let position = start
  const frame = (message: JsonObject | undefined): string => {
    const { threadId: _, ...rest } = position
    const id = threadPartId('event', threadId, JSON.stringify(rest))
    return `id: ${id}\ndata: ${message ? JSON.stringify({ jsonrpc: '2.0', ...message }) : ''}\n\n`
  }
  try {
    if (session.hasEmptyEvents) yield frame(undefined)
    for (;;) {
      const settling = ticks.until(runtime.threads.settled(threadId, { signal: own }))
      let step = await settling.next()
      for (; !step.done; step = await settling.next()) yield frame(step.value)
      const result = step.value
      const item = session.hasForms
        ? result.waiting.find((one) => !closedIds.has(one.interruptId) && mayAnswer(principal, one))
        : undefined
      if (!item || position.asked.length >= MAX_ASKED)
        return yield frame({ id: position.id, result: toolResult(runtime, result) })
      const { interruptId } = item
      const question = questionAbout(item)
      const isNew = !position.asked.includes(interruptId)
      position = isNew ? { ...position, asked: [...position.asked, interruptId] } : position
      const answering = new AbortController()
      const forget = mcpCallsOf(services).addQuestion(client, question.id, () => {
        closedIds.add(interruptId)
        answering.abort()
      })
      try {
        if (isNew) yield frame(question)
        const changing = ticks.until(
          nextChange(runtime, item, AbortSignal.any([own, answering.signal])),
        )
        for (let tick = await changing.next(); !tick.done; tick = await changing.next())
          yield frame(tick.value)
      } finally {
        forget()
      }
      own.throwIfAborted()
    }
  } catch (error) {
    if (!own.aborted) throw error
  } finally {
    ticks.stop()
    open.remove()
  }
}

/** Resolves when something happens in the thread of a call that waits, or when the signal aborts. */
async function nextChange(
  runtime: Runtime,
  { threadId, rootId, interruptId }: WaitingItem,
  signal: AbortSignal,
): Promise<void> {
  // The position is read before the list, so that no answer is missed: one that comes in between is missing from
  // the list, and a later one is an event after the position.
  const { seq, tenant } = await runtime.threads.head(threadId)
  const waiting = await runtime.inbox.list({ tenant, rootId })
  if (!waiting.some((one) => one.threadId === threadId && one.interruptId === interruptId)) return
  const options = { after: String(seq), signal, includesDeltas: false }
  for await (const _ of runtime.subscribe(threadId, options)) return
}

/** The question to a person about a call that waits (MCP 2025-11-25, Elicitation, "Form Mode"). */
function questionAbout(item: WaitingItem): JsonObject & { readonly id: string } {
  const { threadId, interruptId, kind, request } = item
  return {
    id: threadPartId('ask', threadId, JSON.stringify([kind, interruptId, request?.digest])),
    method: 'elicitation/create',
    params: {
      message: waitingText(item),
      requestedSchema: { type: 'object', ...(kind === 'variables' ? {} : FORMS[kind]) },
    },
  }
}

/** There is no form for variables: a session never waits for them, and MCP forbids to ask for secrets in a form. */
const FORMS: Readonly<Record<Exclude<WaitingItem['kind'], 'variables'>, JsonObject>> = {
  approval: {
    properties: {
      decision: { type: 'string', title: 'Decision', enum: ['approve', 'deny'] },
      reason: { type: 'string', title: 'Reason', maxLength: 10_000 },
    },
    required: ['decision'],
  },
  in_doubt: {
    properties: {
      found: { type: 'string', title: 'Did the call have its effect?', enum: [...FOUND_EFFECTS] },
    },
    required: ['found'],
  },
  input: {
    properties: { answer: { type: 'string', title: 'Answer' } },
    required: ['answer'],
  },
}

/** Makes the result of a tool from the result of a session. */
export function toolResult(runtime: Runtime, result: SessionResult): JsonObject {
  const { outcome, waiting, hint, data, thread } = result
  const ownText = sharedText(runtime, result)
  const isWaiting = outcome === 'waiting'
  const waits = waiting.map(waitingText)
  const lines = isWaiting
    ? [ownText, ...waits, `A person has to answer; then continue the thread ${thread.id}.`]
    : [ownText, outcome === 'completed' ? '' : (hint ?? '')]
  const output = lines.filter((line) => line !== '').join('\n\n')
  return {
    content: [textBlock(output === '' ? `The thread is ${outcome}.` : output)],
    structuredContent: withoutUndefined({
      threadId: thread.id,
      status: outcome,
      text: ownText,
      data,
      waiting: waiting.map(waitingForm),
      hint,
    }),
    isError: outcome === 'failed' || outcome === 'terminated',
  }
}

/** Makes a block of text. */
export function textBlock(words: string): JsonObject {
  return { type: 'text', text: words }
}

/** Reports progress at intervals, so that a client which waits for a long time does not give up. */
class Ticks {
  readonly #services: Services
  readonly #token: string | number | undefined
  #handle: TimerHandle | undefined
  #count = 0

  constructor(services: Services, token: string | number | undefined) {
    this.#services = services
    this.#token = token
  }

  /** Yields a notification for each interval until the promise settles, and returns its value. */
  async *until<T>(promise: Promise<T>): AsyncGenerator<JsonObject, T> {
    const token = this.#token
    if (token === undefined) return promise
    const { timers, limits } = this.#services
    const ending = promise.then(
      () => true,
      () => true, // the promise is awaited below, where it rejects again
    )
    for (;;) {
      const tick = new Promise<false>((resolve) => {
        this.#handle = timers.set(limits.heartbeatMs, () => resolve(false))
      })
      const isOver = await Promise.race([ending, tick])
      this.stop()
      if (isOver) return promise
      const params = { progressToken: token, progress: ++this.#count, message: 'Still at work.' }
      yield { method: 'notifications/progress', params }
    }
  }

  stop(): void {
    if (this.#handle !== undefined) this.#services.timers.clear(this.#handle)
    this.#handle = undefined
  }
}

/** The tool calls and questions whose streams are open in this process. */
class OpenCalls {
  readonly #calls = new Map<string, { readonly threadId: string; readonly cancel: () => void }>()
  readonly #questions = new Map<string, () => void>()

  /** Adds a call. Its signal aborts when the client cancels it. */
  add(
    client: string,
    session: string | undefined,
    { id, threadId }: McpPosition,
  ): { readonly signal: AbortSignal; remove(): void } {
    const abort = new AbortController()
    const key = JSON.stringify([client, session, id])
    const entry = { threadId, cancel: () => abort.abort() }
    // Without a session, two clients with the same key could use the same request id, so the call is not
    // added.
    if (session !== undefined) this.#calls.set(key, entry)
    const remove = (): void => {
      if (this.#calls.get(key) === entry) this.#calls.delete(key)
    }
    return { signal: abort.signal, remove }
  }

  /** Ends the stream of a call and returns the id of its thread. */
  cancel(client: string, session: string, id: string | number): string | undefined {
    const call = this.#calls.get(JSON.stringify([client, session, id]))
    call?.cancel()
    return call?.threadId
  }

  addQuestion(client: string, id: string, close: () => void): () => void {
    const key = JSON.stringify([client, id])
    this.#questions.set(key, close)
    return () => {
      if (this.#questions.get(key) === close) this.#questions.delete(key)
    }
  }

  /** Ends the wait for an answer that the client does not give. */
  closeQuestion(client: string, id: string): void {
    this.#questions.get(JSON.stringify([client, id]))?.()
  }
}

const openCalls = new WeakMap<Services, OpenCalls>()

/** Returns the open calls of a server. */
export function mcpCallsOf(services: Services): OpenCalls {
  const calls = openCalls.get(services) ?? new OpenCalls()
  openCalls.set(services, calls)
  return calls
}

import { isPlainObject } from '@skein/base'
import {
  isAssistantMessage,
  isToolResultMessage,
  isUserMessage,
  type Message,
  ToolResultMessage,
  type Turn,
  UserMessage,
} from '@skein/ai'
import {
  toLine,
  type EstimateTokens,
  estimateTokens,
  contentTokens,
  sumTokens,
  tokenCounter,
  firstIndex,
} from './budget.ts'
import { invalidUse } from '../contract/agent-error.ts'
import type { InferenceChanges, InferenceRequest, Middleware } from '../contract/agent-types.ts'
import { changedView, type ContextPolicy, withKeptView } from './kept-view.ts'

// `pruneToolOutputs`, `slidingWindow` and `summarize` act before every inference, also in the middle of a
// run. They change only what the model is sent; the state keeps the whole history.

/** Options of `pruneToolOutputs`. */
export interface PruneToolOutputsOptions {
  /** The number of tokens that the model accepts. Default 200,000. */
  readonly contextLimit?: number
  /** Tokens of the limit that are kept free for the answer. Default 16,000. */
  readonly outputReserve?: number
  /** Tokens at the end of the history that are not changed as long as the rest can be cleared. Default 40,000. */
  readonly protectRecent?: number
  /** Default: counts one token per four characters of JSON. */
  readonly estimate?: EstimateTokens
  /** The text that the model sees instead of a cleared output. */
  readonly placeholder?: string
}

/**
 * Clears old tool outputs when the next request would be too long for the model (UAP §6.2, pattern 1). Every
 * call keeps a result, because vendors reject a call without one. If the request is then still too long by the
 * vendor's count, newer outputs are cleared too, except those of the last message, and after that the oldest
 * messages are left out.
 */
export function pruneToolOutputs(options: PruneToolOutputsOptions = {}): Middleware {
  const { contextLimit = 200_000, outputReserve = 16_000, protectRecent = 40_000 } = options
  const { estimate = estimateTokens, placeholder = '[Output cleared - context limit]' } = options
  const limit = contextLimit - outputReserve
  // Each message is cleared once and the result is reused, so that the vendor's prompt cache stays valid.
  const clearedForms = new WeakMap<Message, ToolResultMessage>()
  const clear = (message: Message): Message => {
    if (!isToolResultMessage(message)) return message
    if (message.results.every(({ result }) => result === placeholder)) return message
    let clearedForm = clearedForms.get(message)
    if (clearedForm) return clearedForm
    const { id, timestamp, metadata } = message
    const results = message.results.map((result) => ({ ...result, result: placeholder }))
    clearedForm = new ToolResultMessage(results, { id, timestamp, metadata })
    clearedForms.set(message, clearedForm)
    return clearedForm
  }
  const policy: ContextPolicy = { name: 'prune-tool-outputs', clear }
  return {
    name: policy.name,
    onInference(given) {
      const request = withKeptView(given, policy)
      const asBefore = request === given ? undefined : { messages: request.messages }
      const count = tokenCounter(request, estimate)
      if (count(request.messages) <= limit) return asBefore
      let recent = 0
      const { known: old, added } = splitInput(request)
      const newest = old.toReversed().map((message) => {
        recent += estimate(message)
        return recent <= protectRecent ? message : clear(message)
      })
      const outputs = [...newest.toReversed(), ...added]
      // Protected messages are cleared or left out only by the vendor's count (`request.last`) or by our own
      // estimate, never by an estimate of the application.
      const size = request.last ? count : options.estimate ? () => 0 : contentTokens
      const changed = (messages: readonly Message[]): InferenceChanges =>
        changedView(request, messages, policy)
      // If clearing frees only a little, newer outputs are cleared too, until a quarter of the limit is free. Otherwise
      // each following step would change a message, and with it the prefix in the vendor's prompt cache.
      const goal = limit * 0.75
      const outputTokens = size(outputs)
      const isEnough = size(request.messages) - outputTokens >= limit * 0.25
      if (outputTokens <= goal || (outputTokens <= limit && isEnough)) return changed(outputs)
      const lastGroup = outputs.length - (newestGroups(outputs, 1)[0]?.length ?? 0)
      const clearFirst = (end: number): readonly Message[] =>
        outputs.map((message, index) => (index < end ? clear(message) : message))
      const clearCount = firstIndex(lastGroup, (end) => size(clearFirst(end)) <= goal)
      const withoutOutputs = clearFirst(clearCount)
      if (size(withoutOutputs) <= goal) return changed(withoutOutputs)
      // Half of the limit, as `slidingWindow` does: nothing is left whose output could be cleared.
      return changed(newestWithin(withoutOutputs, (messages) => size(messages) <= limit * 0.5))
    },
  }
}

/** Options of `slidingWindow`. */
export interface SlidingWindowOptions {
  /** The largest number of tokens of a request. Default: no limit, only the number of messages counts. */
  readonly maxTokens?: number
  /** Default: counts one token per four characters of JSON. */
  readonly estimate?: EstimateTokens
}

/**
 * Sends only the newest messages (UAP §6.2, pattern 2): at most `maxMessages`, at least about half as many. The window
 * moves in steps of half its size, so that the requests between two steps begin alike and the vendor's prompt cache
 * holds. It starts with a user message, and calls are never separated from their results. There may therefore be a
 * few messages fewer than the limit, or more if the last calls and results alone exceed it. New input is sent in any
 * case and does not count as a message.
 */
export function slidingWindow(maxMessages = 50, options: SlidingWindowOptions = {}): Middleware {
  const { maxTokens = Infinity, estimate = estimateTokens } = options
  if (!Number.isInteger(maxMessages) || maxMessages < 1)
    throw invalidUse(`slidingWindow takes a whole number from 1, not ${String(maxMessages)}.`)
  const policy: ContextPolicy = { name: 'sliding-window' }
  return {
    name: policy.name,
    onInference(given) {
      const request = withKeptView(given, policy)
      const { known, added } = splitInput(request)
      const kept = known.length > maxMessages ? newestInSteps(known, maxMessages) : known
      const count = tokenCounter(request, estimate)
      const all = [...kept, ...added]
      const window =
        count(all) <= maxTokens
          ? all
          : (tailInSteps(all, (messages) => count(messages) <= maxTokens, {
              estimate,
              step: maxTokens / 2,
            }) ?? newestWithin(all, (messages) => count(messages) <= maxTokens))
      if (window.length < request.messages.length) return changedView(request, window, policy)
      return request === given ? undefined : { messages: request.messages }
    },
  }
}

/**
 * Returns at most `limit` of the newest messages. Where they start depends only on the beginning of the list, in steps
 * of half the limit, so that a list to which messages were added mostly starts at the same message.
 */
function newestInSteps(messages: readonly Message[], limit: number): readonly Message[] {
  const step = Math.max(1, Math.floor(limit / 2))
  const size = messages.length - Math.ceil((messages.length - limit) / step) * step
  const groups = newestGroups(messages, size)
  const start = groups.findIndex(([first]) => isUserMessage(first))
  // What begins only with the newest question would be too little: later questions would move the start.
  const fromQuestion = groups.slice(Math.max(start, 0)).flat()
  if (start >= 0 && fromQuestion.length >= size / 2) return fromQuestion
  // The newest messages begin with no user message, so the user message before them is kept before them.
  const rest = newestGroups(messages, Math.max(1, size - 1)).flat()
  const question = messages.slice(0, messages.length - rest.length).findLast(isUserMessage)
  return question ? [question, ...rest] : rest
}

/**
 * Returns the longest tail that `passes` accepts of those that start a multiple of `step` tokens after the beginning;
 * undefined if none does. The user message before a tail that does not start with one is kept before it.
 */
function tailInSteps(
  messages: readonly Message[],
  passes: (messages: readonly Message[]) => boolean,
  { estimate, step }: { readonly estimate: EstimateTokens; readonly step: number },
): readonly Message[] | undefined {
  const groups = newestGroups(messages, Infinity)
  let total = 0
  let next = step
  for (const [index, group] of groups.entries()) {
    if (index > 0 && total >= next) {
      next = (Math.floor(total / step) + 1) * step
      const tail = fromGroup(groups, index)
      if (passes(tail)) return tail
    }
    total += sumTokens(group, estimate)
  }
  return undefined
}

/** Returns the messages of the groups from `index` on, behind the last user message before them if they need one. */
function fromGroup(groups: readonly (readonly Message[])[], index: number): readonly Message[] {
  const tail = groups.slice(index).flat()
  if (isUserMessage(tail[0])) return tail
  const question = groups.slice(0, index).flat().findLast(isUserMessage)
  return question ? [question, ...tail] : tail
}

/** The model that writes the summary: `llm({ model, params: { max_tokens: 500 } })`, or a similar object. */
export interface Summarizer {
  generate(prompt: string): Promise<Pick<Turn, 'response'>>
}

/** Options of `summarize`. */
export interface SummarizeOptions {
  /** A request of more tokens than this is shortened. Default 150,000. */
  readonly threshold?: number
  /** The number of messages at the end that are not summarised, if they fit. Default 10. */
  readonly keepRecent?: number
  /** The largest number of tokens that the summarizer gets in one request. Default 100,000. */
  readonly summarizerLimit?: number
  /** Default: counts one token per four characters of JSON. */
  readonly estimate?: EstimateTokens
  /** The prompt for the summarizer; the messages follow it, one JSON object per line. */
  readonly prompt?: string
}

const PROMPT = 'Summarize this conversation, preserving key facts:'
/** The metadata entry of a state that holds its newest summary. */
const SUMMARY = 'contextSummary'

/**
 * Lets a smaller model summarise the old part of a long history, and continues with the summary and the newest
 * messages (UAP §6.2, pattern 3). Calls stay together with their results. The summary is kept in the state's
 * metadata, so that later runs of the conversation continue from it.
 */
export function summarize(summarizer: Summarizer, options: SummarizeOptions = {}): Middleware {
  const { threshold = 150_000, keepRecent = 10, estimate = estimateTokens } = options
  const { prompt = PROMPT, summarizerLimit = 100_000 } = options
  const policy: ContextPolicy = { name: 'summarize-context' }
  return {
    name: policy.name,
    async onInference(whole) {
      const request = withKeptView(withStoredSummary(whole), policy)
      const { known: given, added } = splitInput(request)
      const count = tokenCounter(request, estimate)
      const isEnough = (messages: readonly Message[]): boolean => count(messages) <= threshold
      const asBefore = request === whole ? undefined : { messages: request.messages }
      if (isEnough([...given, ...added])) return asBefore
      let groups = newestGroups(given, keepRecent)
      // A quarter of the threshold is left for the summary and for what the next steps add.
      const fits = (): boolean => sumTokens(groups.flat(), estimate) <= threshold * 0.75
      while (groups.length > 1 && threshold > 0 && !fits()) groups = groups.slice(1)
      const recent = groups.flat()
      const old = given.slice(0, given.length - recent.length)
      const upTo = old.at(-1)?.id
      if (upTo === undefined) return asBefore
      let text = ''
      // Old messages that are together too long for the summarizer are summarised part by part.
      for (const part of partsOf(old, estimate, summarizerLimit)) {
        const before = text === '' ? [] : [`${SUMMARY_HEAD}${text}`]
        const lines = part.map((message) => toLine(message))
        const { response } = await summarizer.generate([prompt, ...before, ...lines].join('\n'))
        text = response.text
      }
      const changes = changedView(request, [summaryMessage(text), ...recent, ...added], policy)
      const summary = { upTo: original(request, upTo), text }
      return { ...changes, metadata: { ...changes.metadata, [SUMMARY]: summary } }
    },
  }
}

const SUMMARY_HEAD = '[Previous conversation summary]\n'

function summaryMessage(text: string): UserMessage {
  return new UserMessage(`${SUMMARY_HEAD}${text}`, {
    metadata: { uap: { synthetic: true, phase: 'summary' } },
  })
}

/** Returns the id of the last message of the state that the summary covers. */
function original({ state }: InferenceRequest, id: string): string {
  if (state.messages.some((message) => message.id === id)) return id
  const summary = state.metadata[SUMMARY] // the only summarised message was an earlier summary
  return isPlainObject(summary) ? String(summary['upTo']) : id
}

/** Replaces the messages that an earlier run has summarised, if this run still has them in full. */
function withStoredSummary(request: InferenceRequest): InferenceRequest {
  const { messages, state } = request
  const summary = state.metadata[SUMMARY]
  if (!isPlainObject(summary) || typeof summary['text'] !== 'string') return request
  const last = messages.findIndex(({ id }) => id === summary['upTo'])
  if (last < 0) return request
  return { ...request, messages: [summaryMessage(summary['text']), ...messages.slice(last + 1)] }
}

/** Cuts a list into parts of at most `limit` tokens; a single message may be longer. */
function partsOf(
  messages: readonly Message[],
  estimate: EstimateTokens,
  limit: number,
): Message[][] {
  const parts: Message[][] = []
  let size = Infinity
  for (const message of messages) {
    const tokens = estimate(message)
    size += tokens
    if (size > limit) {
      parts.push([])
      size = tokens
    }
    parts.at(-1)!.push(message)
  }
  return parts
}

/** Separates the new input at the end of a request from the rest. */
function splitInput({ messages, inputs }: InferenceRequest): {
  readonly known: readonly Message[]
  readonly added: readonly Message[]
} {
  const start = Math.max(0, messages.length - inputs)
  return { known: messages.slice(0, start), added: messages.slice(start) }
}

/**
 * Returns all messages if `passes` accepts them, otherwise as many of the newest as it accepts, beginning with a user
 * message. The last group (one message, or calls with their results) is always included. If no user message
 * is among them, the last user message before them is added at the front.
 */
function newestWithin(
  messages: readonly Message[],
  passes: (messages: readonly Message[]) => boolean,
): readonly Message[] {
  if (passes(messages)) return messages
  const groups = newestGroups(messages, Infinity)
  const from = (index: number): readonly Message[] => fromGroup(groups, index)
  const first = firstIndex(Math.max(0, groups.length - 1), (index) => passes(from(index)))
  return groups.length > 0 ? from(first) : messages
}

/**
 * Returns the newest messages in groups that must not be split: an assistant's calls with their results;
 * every other message is a separate group. Together the groups have at most `count` messages. The last group
 * is always included, even if it is longer, because it may contain calls that are about to be answered.
 */
function newestGroups(
  messages: readonly Message[],
  count: number,
): readonly (readonly Message[])[] {
  const groups: Message[][] = []
  for (const message of messages) {
    const last = groups.at(-1)
    const answersLast = last && isAssistantMessage(last[0]) && last[0].toolCalls?.length
    if (answersLast && isToolResultMessage(message)) last.push(message)
    else groups.push([message])
  }
  let first = groups.length
  let size = 0
  while (first > 0) {
    const next = groups[first - 1]!.length
    if (size > 0 && size + next > count) break
    size += next
    first--
  }
  return groups.slice(first)
}

import {
  freezeTree,
  defaultInputLimits,
  type InputLimits,
  type JsonObject,
  type JsonSchema,
} from '@skein/base'
import { ErrorCode, type ErrorOrigin, UPPError } from '../contract/error.ts'
import type { ToolExecutionEndEvent, StreamEvent } from '../contract/event.ts'
import { isMalformed, malformedAnswer } from '../contract/malformed-answer.ts'
import { type FoldLimits, MessageFold } from './fold-message.ts'
import {
  AssistantMessage,
  type Message,
  ToolResultMessage,
  UserMessage,
} from '../contract/message.ts'
import type { BoundLLMModel, LLMRequest } from '../contract/provider.ts'
import { parseData } from './structured-answer.ts'
import { type SettledCall, toToolExecution, toToolResult } from '../tools/outcome.ts'
import { toFittingResult } from '../tools/result-size.ts'
import type { BatchResult, ToolExecutionEvent } from '../tools/executor.ts'
import type { ToolExecution } from '../contract/tool.ts'
import {
  addSources,
  addUsage,
  type OpenCall,
  type Source,
  type TokenUsage,
  type Turn,
  type Warning,
  zeroUsage,
} from '../contract/turn.ts'

/** A turn that is still being built. Every `Turn`, complete or partial, is built here. */
export class TurnDraft {
  /** The messages of the model and of its tools, in order. */
  readonly produced: Message[] = []
  /** The number of tool rounds so far. */
  rounds = 0
  readonly #inputs: readonly Message[]
  readonly #sources: Pick<LLMRequest, 'ids' | 'clock'>
  readonly #origin: ErrorOrigin
  readonly #maxToolResultBytes: number | undefined
  readonly #limits: FoldLimits
  readonly #executions: ToolExecution[] = []
  readonly #usageByCycle: TokenUsage[] = []
  readonly #warnings: Warning[] = []
  #cited: readonly Source[] = []
  #fold: MessageFold | undefined
  #stop: MessageFold['stop']
  #response: AssistantMessage | undefined
  /** Finished calls of the running batch, so that the turn of a failed call still contains them. */
  #running: ToolExecution[] = []
  readonly #started = new Map<string, JsonObject>()
  #openCalls: readonly OpenCall[] = []

  constructor(
    inputs: readonly Message[],
    sources: Pick<LLMRequest, 'ids' | 'clock' | 'config'>,
    origin: ErrorOrigin,
  ) {
    const { maxMessageBytes, maxToolCalls, maxToolResultBytes } =
      sources.config as Partial<InputLimits>
    this.#maxToolResultBytes = maxToolResultBytes
    this.#limits = {
      maxMessageBytes: maxMessageBytes ?? defaultInputLimits.maxMessageBytes,
      maxToolCalls: maxToolCalls ?? defaultInputLimits.maxToolCalls,
      origin,
    }
    this.#inputs = inputs
    this.#sources = sources
    this.#origin = origin
  }

  get cycles(): number {
    return this.#usageByCycle.length
  }

  beginMessage(): MessageFold {
    this.#stop = undefined
    return (this.#fold = new MessageFold(this.#sources.ids, this.#limits))
  }

  /** Ends a message. Throws when `message_stop` never arrived, because a cut stream is not an answer. */
  endMessage(fold: MessageFold): AssistantMessage {
    if (!fold.stop)
      throw new UPPError('The answer ended without its terminal event.', {
        code: ErrorCode.InvalidResponse,
        ...this.#origin,
        hint: 'The connection was probably cut; error.turn holds what had arrived.',
      })
    this.#fold = undefined
    this.#stop = fold.stop
    this.#usageByCycle.push(fold.stop.usage)
    this.#warnings.push(...(fold.stop.warnings ?? []))
    this.#cited = addSources(this.#cited, fold.stop.sources ?? [])
    const message = fold.message(this.#sources)
    const ended = { ...fold.stop, response: message }
    if (isMalformed(ended)) this.#warnings.push(malformedAnswer(ended))
    this.#addResponse(message)
    return message
  }

  get stopReason(): Turn['stopReason'] {
    return this.#stop?.stopReason ?? 'other'
  }

  /** Adds warnings about the request. The same request is made for every inference, so each is added once. */
  warn(warnings: readonly Warning[]): void {
    for (const warning of warnings)
      if (!this.#warnings.some(({ message }) => message === warning.message))
        this.#warnings.push(warning)
  }

  noteTools(events: readonly ToolExecutionEvent[]): void {
    for (const { type, delta } of events) {
      if (type === 'tool_execution_start') this.#started.set(delta.toolCallId, delta.arguments)
      else this.#running.push(this.#toExecution(delta))
    }
  }

  /** Takes what became of the calls of a batch that was aborted. */
  noteCancelled(settled: readonly SettledCall[]): void {
    const withOutcome = settled.filter(({ outcome }) => outcome.type !== 'deferred')
    this.#running = withOutcome.map(toToolExecution)
  }

  /** Ends a batch. Returns true when every call has a result, so that the model can continue. */
  endTools({ settled, warnings }: BatchResult): boolean {
    this.rounds++
    this.#running = []
    this.#started.clear()
    this.#warnings.push(...warnings)
    const withOutcome = settled.filter(({ outcome }) => outcome.type !== 'deferred')
    this.#executions.push(...withOutcome.map(toToolExecution))
    if (withOutcome.length > 0)
      this.produced.push(
        new ToolResultMessage(
          withOutcome.map((one) => toFittingResult(toToolResult(one), this.#maxToolResultBytes)),
          this.#sources,
        ),
      )
    this.#openCalls = openAfter(this.#response, settled)
    return this.#openCalls.length === 0
  }

  /** Returns the complete turn. `readData` is the model's conversion of structured data, if it has one. */
  turn(structure: JsonSchema | undefined, readData?: BoundLLMModel['readData']): Turn {
    const turn = this.#build()
    const { response, stopReason } = turn
    if (structure === undefined || response.hasToolCalls) return freezeTree(turn)
    const structured = parseData(response, stopReason, this.#origin)
    const data = readData ? readData(structure, structured) : structured
    return freezeTree({ ...turn, data })
  }

  /** Adds a message that asks the model for another answer. */
  askAgain(text: string): void {
    this.produced.push(new UserMessage(text, this.#sources))
  }

  /** Returns the turn as it was produced before a failure. */
  partial(): Turn {
    const fold = this.#fold
    if (fold?.stop) this.endMessage(fold)
    else if (fold) {
      const message = fold.message(this.#sources)
      if (message.content.length > 0 || message.hasToolCalls) this.#addResponse(message)
    }
    this.#fold = undefined
    this.#endRunning()
    return freezeTree(this.#build())
  }

  /** Adds calls that ended before their batch failed, because their side effects are real. */
  #endRunning(): void {
    const ended = this.#running
    if (ended.length === 0) return
    this.#running = []
    this.#executions.push(...ended)
    this.produced.push(
      new ToolResultMessage(
        ended.map(({ toolCallId, toolName, result, isError }) => ({
          toolCallId,
          toolName,
          result,
          isError,
        })),
        this.#sources,
      ),
    )
    const answeredIds = new Set(ended.map(({ toolCallId }) => toolCallId))
    this.#openCalls = this.#openCalls.filter(({ toolCallId }) => !answeredIds.has(toolCallId))
  }

  #toExecution(delta: ToolExecutionEndEvent['delta']): ToolExecution {
    const { timestamp: _, durationMs: duration, ...ended } = delta
    const args = this.#started.get(ended.toolCallId) ?? {}
    return { ...ended, arguments: args, duration }
  }

  #addResponse(message: AssistantMessage): void {
    this.#response = message
    this.produced.push(message)
    this.#openCalls = openAfter(message, [])
  }

  /** Returns the turn without the key `data`, which only a finished, structured answer has. */
  #build(): Turn {
    const response = this.#response ?? new AssistantMessage([], undefined, this.#sources)
    const raw = this.#stop?.rawStopReason
    return {
      messages: [...this.#inputs, ...this.produced],
      response,
      text: response.text,
      toolExecutions: [...this.#executions],
      usage: this.#usageByCycle.reduce(addUsage, zeroUsage),
      usageByCycle: [...this.#usageByCycle],
      cycles: this.cycles,
      stopReason: this.stopReason,
      ...(raw !== undefined && { rawStopReason: raw }),
      warnings: [...this.#warnings],
      sources: this.#cited,
      openCalls: this.#openCalls,
    } as Omit<Turn, 'data'> as Turn
  }
}

/** Returns the calls of a message that have no result in `settled`. */
function openAfter(
  message: AssistantMessage | undefined,
  settled: readonly SettledCall[],
): readonly OpenCall[] {
  const outcomes = new Map(settled.map((one) => [one.call.toolCallId, one]))
  return (message?.toolCalls ?? []).flatMap(({ toolCallId }): OpenCall[] => {
    const { outcome, parsed } = outcomes.get(toolCallId) ?? {}
    if (!outcome) return [{ toolCallId }]
    if (outcome.type !== 'deferred') return []
    const { request } = outcome
    return [parsed ? { toolCallId, request, parsed } : { toolCallId, request }]
  })
}

/** Yields a complete answer as one batch. It is not a generator, which would take several more microtasks. */
export function completed(
  model: BoundLLMModel,
  request: LLMRequest,
): AsyncIterable<readonly StreamEvent[]> {
  let isDone = false
  const next = async (): Promise<IteratorResult<readonly StreamEvent[]>> => {
    if (isDone) return { done: true, value: undefined }
    isDone = true
    return { done: false, value: await model.complete(request) }
  }
  return { [Symbol.asyncIterator]: () => ({ next }) }
}

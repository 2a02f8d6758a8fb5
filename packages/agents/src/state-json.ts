import { deepFreeze, isDeepFrozen, isPlainObject, type JsonObject } from '@skein/base'
import {
  isToolResultMessage,
  messageFromJSON,
  messageToJSON,
  type Message,
  type MessageJSON,
  type ToolResultMessage,
} from '@skein/ai'
import { invalidRequest, messageOf } from './agent-error.ts'
import type { DeferredCall, Suspension } from './interrupt.ts'
import type { PlanStep } from './plan-step.ts'
import { readData } from './read-data.ts'
import { SharedList } from './shared-list.ts'
import { checkJson, frozenCopy } from './state-data.ts'
import type { AgentStateJSON, StateFields, SuspensionJSON } from './state.ts'
import type { SubagentExecutionTrace } from './subagent-trace.ts'

/** The version that is written; every 1.x is read (UAP §12.3). */
export const UAP_VERSION = '1.0.0'

export function writeStateJSON(
  id: string,
  messages: readonly Message[],
  fields: StateFields,
): AgentStateJSON {
  const { step, metadata, reasoning, plan, subagentTraces, suspension, unknown } = fields
  checkJson(metadata, 'metadata')
  if (plan) checkJson(plan, 'plan')
  checkJson(subagentTraces.view, 'subagentTraces')
  return {
    ...unknown,
    version: UAP_VERSION,
    id,
    messages: messages.map((message, index) => toMessageJSON(message, `messages[${index}]`)),
    step,
    metadata,
    reasoning: reasoning.view,
    ...(plan && { plan }),
    ...(subagentTraces.length > 0 && { subagentTraces: subagentTraces.view }),
    ...(suspension && { suspension: writeSuspension(suspension) }),
  }
}

/** JSON of messages that cannot change any more, so that a checkpoint per step stays cheap. */
const written = new WeakMap<Message, MessageJSON>()

function toMessageJSON(message: Message, path: string): MessageJSON {
  const known = written.get(message)
  if (known) return known
  const json = plainJson(messageToJSON(message), path)
  // JSON shares parts of its message; one that can still change must not be frozen through it.
  if (isDeepFrozen(message)) written.set(message, deepFreeze(json))
  return json
}

/** A tool's result may hold what JSON says differently (a Date) or not at all (a bigint). */
function plainJson(json: MessageJSON, path: string): MessageJSON {
  try {
    checkJson(json, path)
    return json
  } catch {
    try {
      return JSON.parse(JSON.stringify(json)) as MessageJSON // JSON keeps the outer shape
    } catch (error) {
      throw invalidRequest(`The state cannot be written as JSON: ${path}: ${messageOf(error)}`)
    }
  }
}

function writeSuspension({ answered, deferred }: Suspension): SuspensionJSON {
  checkJson(deferred, 'suspension.deferred')
  return {
    ...(answered && { answered: toMessageJSON(answered, 'suspension.answered') }),
    deferred,
  }
}

/** Checks untrusted JSON all the way down before anything is built from it. */
export function readStateJSON(json: unknown): {
  id: string
  messages: readonly Message[]
  fields: StateFields
} {
  const value = readData(json)
  if (!isPlainObject(value)) throw invalid('it', 'is not an object')
  const { version, id, messages, step, metadata, reasoning, plan, subagentTraces, suspension } =
    value
  checkVersion(version)
  if (typeof id !== 'string' || id === '') throw invalid('id', 'is not a non-empty string')
  if (!isStep(step)) throw invalid('step', 'is not a whole number from 0')
  if (!isPlainObject(metadata)) throw invalid('metadata', 'is not an object')
  const reasons = optionalList(reasoning, 'reasoning', isString, 'is not a string')
  const steps = plan === undefined ? undefined : readPlan(plan)
  const traces = optionalList(subagentTraces, 'subagentTraces', isTrace, 'is not a trace')
  return {
    id,
    messages: list(messages, 'messages').map((one, at) => readMessage(one, `messages[${at}]`)),
    fields: {
      step,
      metadata: frozenCopy(metadata) as JsonObject, // parsed JSON, checked by readData
      reasoning: SharedList.of(reasons),
      plan: steps && frozenCopy(steps),
      subagentTraces: SharedList.of(traces.map((trace) => frozenCopy(trace))),
      suspension: suspension === undefined ? undefined : readSuspension(suspension),
      unknown: unknownFields(value),
    },
  }
}

function checkVersion(version: unknown): void {
  if (typeof version === 'string' && /^1(\.\d+){0,2}$/.test(version)) return
  throw invalidRequest(
    `Unsupported UAP version: ${JSON.stringify(version) ?? 'none'}.`,
    `This release reads every 1.x and writes ${UAP_VERSION}.`,
  )
}

function readMessage(json: unknown, path: string): Message {
  try {
    return messageFromJSON(json)
  } catch (error) {
    throw invalid(path, `is no message (${messageOf(error)})`)
  }
}

function readPlan(plan: unknown): PlanStep[] {
  return list(plan, 'plan').map((step, index) => {
    if (!isPlainObject(step)) throw invalid(`plan[${index}]`, 'is not an object')
    const { id, description, tool, dependsOn = [], status } = step
    const isStep =
      isString(id) &&
      isString(description) &&
      (tool === undefined || isString(tool)) &&
      Array.isArray(dependsOn) &&
      dependsOn.every(isString) &&
      statuses.has(status as PlanStep['status'])
    if (!isStep) throw invalid(`plan[${index}]`, 'is not a plan step')
    return { ...step, dependsOn } as unknown as PlanStep // its fields were checked just above
  })
}

const statuses = new Set<PlanStep['status']>(['pending', 'in_progress', 'completed', 'failed'])

function isTrace(value: unknown): value is SubagentExecutionTrace {
  if (!isPlainObject(value)) return false
  const { subagentId, subagentType, parentToolCallId, prompt, startTime, endTime, success } = value
  const { toolExecutions = [], children = [] } = value
  return (
    [subagentId, subagentType, parentToolCallId, prompt].every(isString) &&
    Number.isFinite(startTime) &&
    Number.isFinite(endTime) &&
    typeof success === 'boolean' &&
    Array.isArray(toolExecutions) &&
    toolExecutions.every(isToolTrace) &&
    Array.isArray(children) &&
    children.every(isTrace)
  )
}

function isToolTrace(value: unknown): boolean {
  if (!isPlainObject(value)) return false
  return (
    isString(value['toolName']) && isPlainObject(value['arguments']) && isString(value['result'])
  )
}

function readSuspension(value: unknown): Suspension {
  if (!isPlainObject(value)) throw invalid('suspension', 'is not an object')
  const answered =
    value['answered'] === undefined
      ? undefined
      : readMessage(value['answered'], 'suspension.answered')
  if (answered && !isToolResultMessage(answered))
    throw invalid('suspension.answered', 'is no tool result message')
  const deferred = list(value['deferred'], 'suspension.deferred')
  if (!deferred.every(isDeferredCall)) throw invalid('suspension.deferred', 'holds no such calls')
  return Object.freeze({
    ...(answered && { answered: answered as ToolResultMessage }),
    deferred: frozenCopy(deferred),
  })
}

function isDeferredCall(value: unknown): value is DeferredCall {
  if (!isPlainObject(value) || !isString(value['toolCallId'])) return false
  const request = value['request']
  return isPlainObject(request) && kinds.has(request['kind']) && 'request' in request
}

const kinds = new Set<unknown>(['approval', 'input', 'child', 'timer'])

const known = new Set([
  'version',
  'id',
  'messages',
  'step',
  'metadata',
  'reasoning',
  'plan',
  'subagentTraces',
  'suspension',
])

function unknownFields(value: Record<string, unknown>): JsonObject | undefined {
  const entries = Object.entries(value).filter(([name]) => !known.has(name))
  return entries.length > 0 ? (frozenCopy(Object.fromEntries(entries)) as JsonObject) : undefined
}

function isStep(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0
}

function isString(value: unknown): value is string {
  return typeof value === 'string'
}

function list(value: unknown, field: string): readonly unknown[] {
  if (!Array.isArray(value)) throw invalid(field, 'is not a list')
  return value
}

function optionalList<T>(
  value: unknown,
  field: string,
  isItem: (item: unknown) => item is T,
  problem: string,
): readonly T[] {
  if (value === undefined) return []
  return list(value, field).map((item, index) => {
    if (!isItem(item)) throw invalid(`${field}[${index}]`, problem)
    return item
  })
}

function invalid(field: string, problem: string): Error {
  return invalidRequest(`This is not the JSON of an agent state: ${field} ${problem}.`)
}

import { freezeTree, isDeepFrozen, isPlainObject, type JsonObject, messageOf } from '@skein/base'
import {
  isToolResultMessage,
  type Message,
  messageFromJSON,
  type MessageJSON,
  messageToJSON,
  type ToolResultMessage,
  toResultJson,
} from '@skein/ai'
import { invalidUse } from '../contract/agent-error.ts'
import { checkJson, frozenData, readData } from './state-data.ts'
import { isRunAccount } from './run-account.ts'
import type {
  AgentStateJSON,
  DeferredCall,
  PlanStep,
  RunAccount,
  SubagentExecutionTrace,
  Suspension,
} from './state-types.ts'

/** The UAP version written into states; states of every version 1.x can be read (UAP §12.3). */
const UAP_VERSION = '1.0.0'

/** The fields of a state; its lists are plain arrays. */
export interface StateParts {
  readonly id: string
  readonly messages: readonly Message[]
  readonly step: number
  readonly metadata: JsonObject
  readonly reasoning: readonly string[]
  readonly plan?: readonly PlanStep[]
  readonly subagentTraces: readonly SubagentExecutionTrace[]
  readonly suspension?: Suspension
  readonly run?: RunAccount
  /** Fields of the JSON that are unknown to this version. */
  readonly unknown?: JsonObject
}

/**
 * Returns the JSON of a state. Throws INVALID_REQUEST with the path of
 * the first value that JSON cannot express.
 */
export function writeStateJSON(parts: StateParts): AgentStateJSON {
  const { id, messages, step, metadata, reasoning, plan, subagentTraces, suspension, run } = parts
  checkJson(metadata, 'metadata')
  if (plan) checkJson(plan, 'plan')
  checkJson(subagentTraces, 'subagentTraces')
  if (suspension) checkJson(suspension.deferred, 'suspension.deferred')
  const json: { -readonly [Name in keyof AgentStateJSON]: AgentStateJSON[Name] } = {
    ...parts.unknown,
    version: UAP_VERSION,
    id,
    messages: messages.map((message, index) => toMessageJSON(message, `messages[${index}]`)),
    step,
    metadata,
    reasoning,
  }
  // Absent parts have no field, so that the object is equal before and after a JSON round trip.
  if (plan) json.plan = plan
  if (subagentTraces.length > 0) json.subagentTraces = subagentTraces
  if (suspension) {
    const { answered, deferred } = suspension
    json.suspension = answered
      ? { answered: toMessageJSON(answered, 'suspension.answered'), deferred }
      : { deferred }
  }
  if (run) json.run = run
  return json
}

/** The JSON of frozen messages, so that a checkpoint per step stays cheap. */
const written = new WeakMap<Message, MessageJSON>()

function toMessageJSON(message: Message, path: string): MessageJSON {
  const known = written.get(message)
  if (known) return known
  let json: MessageJSON
  try {
    json = messageToJSON(message)
    checkJson(json, path)
  } catch {
    json = byResultRule(message, path)
  }
  // The JSON shares parts with its message, so freezing it would freeze a message that may still change.
  if (isDeepFrozen(message)) written.set(message, freezeTree(json))
  return json
}

/**
 * Converts a message by the result rule (`toResultJson`). Messages of a run contain only JSON and bytes
 * already, but a message that the application made may contain any value. Throws with the path of a value
 * that JSON cannot express.
 */
function byResultRule(message: Message, path: string): MessageJSON {
  try {
    toResultJson({ ...message }, path) // throws for a cycle, in which `messageToJSON` would not end
    // `toResultJson` keeps all fields, so its result is still the JSON of a message.
    return toResultJson(messageToJSON(message), path) as unknown as MessageJSON
  } catch (error) {
    throw invalidUse(`The state cannot be written as JSON: ${messageOf(error)}.`)
  }
}

/** Reads untrusted JSON. Everything is checked at every depth before the state is built. */
export function readStateJSON(json: unknown): StateParts {
  const value = readData(json)
  if (!isPlainObject(value)) throw invalid('it', 'is not an object')
  const { version, id, messages, step, metadata, reasoning, plan, ...others } = value
  const { subagentTraces, suspension, run, ...unknown } = others
  if (typeof version !== 'string' || !/^1(\.\d+){0,2}$/.test(version))
    throw invalidUse(
      `Unsupported UAP version: ${JSON.stringify(version) ?? 'none'}.`,
      `This release reads every 1.x and writes ${UAP_VERSION}.`,
    )
  if (typeof id !== 'string' || id === '') throw invalid('id', 'is not an id')
  if (!Number.isSafeInteger(step) || (step as number) < 0)
    throw invalid('step', 'is not a whole number from 0')
  if (!isPlainObject(metadata)) throw invalid('metadata', 'is not an object')
  const reasons = optionalList(reasoning, 'reasoning', isString, 'is not a string')
  const steps = plan === undefined ? undefined : list(plan, 'plan').map(readPlanStep)
  const traces = optionalList(subagentTraces, 'subagentTraces', isTrace, 'is not a trace')
  if (run !== undefined && !isRunAccount(run)) throw invalid('run', 'is not an account')
  return {
    id,
    messages: list(messages, 'messages').map((one, at) => readMessage(one, `messages[${at}]`)),
    step: step as number, // checked just above
    metadata: frozenData(metadata) as JsonObject, // parsed JSON, checked by readData
    reasoning: reasons,
    plan: steps && frozenData(steps),
    subagentTraces: traces.map((trace) => frozenData(trace)),
    suspension: suspension === undefined ? undefined : readSuspension(suspension),
    run: run && frozenData(run),
    unknown: Object.keys(unknown).length > 0 ? (frozenData(unknown) as JsonObject) : undefined,
  }
}

function readMessage(json: unknown, path: string): Message {
  try {
    return messageFromJSON(json)
  } catch (error) {
    throw invalid(path, `is not a message (${messageOf(error)})`)
  }
}

function readPlanStep(step: unknown, index: number): PlanStep {
  if (!isPlainObject(step)) throw invalid(`plan[${index}]`, 'is not an object')
  const { id, description, tool, dependsOn = [], status } = step
  const isPlanStep =
    isString(id) &&
    isString(description) &&
    (tool === undefined || isString(tool)) &&
    Array.isArray(dependsOn) &&
    dependsOn.every(isString) &&
    statuses.has(status as PlanStep['status'])
  if (!isPlanStep) throw invalid(`plan[${index}]`, 'is not a plan step')
  return { ...step, dependsOn } as unknown as PlanStep // its fields were checked just above
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
    toolExecutions.every(
      (one) =>
        isPlainObject(one) &&
        isString(one['toolName']) &&
        isPlainObject(one['arguments']) &&
        isString(one['result']),
    ) &&
    Array.isArray(children) &&
    children.every(isTrace)
  )
}

function readSuspension(value: unknown): Suspension {
  if (!isPlainObject(value)) throw invalid('suspension', 'is not an object')
  const message = value['answered']
  const answered = message === undefined ? undefined : readMessage(message, 'suspension.answered')
  if (answered && !isToolResultMessage(answered))
    throw invalid('suspension.answered', 'is not a tool result')
  const deferred = list(value['deferred'], 'suspension.deferred')
  if (!deferred.every(isDeferredCall))
    throw invalid('suspension.deferred', 'is not a list of calls')
  return Object.freeze({
    answered: answered as ToolResultMessage | undefined, // checked just above
    deferred: frozenData(deferred),
  })
}

function isDeferredCall(value: unknown): value is DeferredCall {
  if (!isPlainObject(value) || !isString(value['toolCallId'])) return false
  const { request, answer = {}, answers = {} } = value
  if (!isPlainObject(answer) || !isPlainObject(answers)) return false
  return isPlainObject(request) && kinds.has(request['kind']) && 'request' in request
}

const kinds = new Set<unknown>(['approval', 'input', 'in_doubt', 'child', 'timer'])

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
  return invalidUse(`This is not the JSON of an agent state: ${field} ${problem}.`)
}

import { freezeTree, isDeepFrozen, isPlainObject, type JsonObject, messageOf } from '@skein/base'
import {
  isToolResultMessage,
  type Message,
  messageFromJSON,
  type MessageJSON,
  messageToJSON,
  toResultJson,
} from '@skein/ai'
import { invalidUse } from '../contract/agent-error.ts'
import { checkJson, frozenData, readData } from './state-data.ts'
import { anId, misfit, type DataRule } from './data-rule.ts'
import { accountRule, usageRule } from './run-account.ts'
import type {
  AgentStateJSON,
  PlanStep,
  RunAccount,
  SubagentExecutionTrace,
  Suspension,
  SuspensionJSON,
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
  const waiting = { 'suspension.deferred': suspension?.deferred }
  const data = { metadata, reasoning, plan, subagentTraces, run, ...waiting }
  for (const [path, part] of Object.entries(data)) if (part) checkJson(part, path)
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

/** Caches the JSON of frozen messages, so that a checkpoint per step stays cheap. */
const jsonForms = new WeakMap<Message, MessageJSON>()

function toMessageJSON(message: Message, path: string): MessageJSON {
  const jsonForm = jsonForms.get(message)
  if (jsonForm) return jsonForm
  let json: MessageJSON
  try {
    json = messageToJSON(message)
    checkJson(json, path)
  } catch {
    json = byResultRule(message, path)
  }
  // Only the JSON of a frozen message is frozen and cached. The JSON shares objects with its message, so the JSON
  // of a message that is not frozen would change together with the message.
  if (isDeepFrozen(message)) jsonForms.set(message, freezeTree(json))
  return json
}

/**
 * Converts a message with `toResultJson`, as tool results are converted. Messages of a run contain only JSON
 * and bytes already, but a message that the application made may contain any value. Throws with the path of a
 * value that JSON cannot express.
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
  const { version } = isPlainObject(value) ? value : { version: UAP_VERSION }
  if (typeof version !== 'string' || !/^1(\.\d+){0,2}$/.test(version))
    throw invalidUse(
      `Unsupported UAP version: ${JSON.stringify(version) ?? 'none'}.`,
      `This release reads every 1.x and writes ${UAP_VERSION}.`,
    )
  const problem = misfit(value, stateRule)
  if (problem !== undefined) throw invalidState(problem)
  const {
    version: _,
    id,
    messages,
    step,
    metadata,
    reasoning = [],
    plan,
    ...others
  } = value as Fields
  const { subagentTraces = [], suspension, run, ...unknown } = others
  return {
    id,
    messages: messages.map((one, at) => readMessage(one, `messages[${at}]`)),
    step,
    metadata: frozenData(metadata),
    reasoning,
    plan: plan && frozenData(plan.map((one) => ({ ...one, dependsOn: one.dependsOn ?? [] }))),
    subagentTraces: subagentTraces.map((trace) => frozenData(trace)),
    suspension: suspension && readSuspension(suspension),
    run: run && frozenData(run),
    unknown: Object.keys(unknown).length > 0 ? frozenData(unknown) : undefined,
  }
}

/** A state that fits `stateRule`; its messages are read one by one. */
type Fields = AgentStateJSON & JsonObject

function readMessage(json: unknown, path: string): Message {
  try {
    return messageFromJSON(json)
  } catch (error) {
    // The error of `messageFromJSON` begins with the path inside the message.
    const text = messageOf(error).replace(/\.$/, '')
    throw invalidState(path + text.replace(/^(Message JSON: )?/, (own) => (own ? '.' : ': ')))
  }
}

function readSuspension({ answered, deferred }: SuspensionJSON): Suspension {
  const path = 'suspension.answered'
  const message = answered && readMessage(answered, path)
  if (message && !isToolResultMessage(message)) throw invalidState(`${path} is not a tool result`)
  return Object.freeze({ answered: message, deferred: frozenData(deferred) })
}

function invalidState(problem: string): Error {
  return invalidUse(`This is not the JSON of an agent state: ${problem}.`)
}

const anObject = {}

const traceRule: DataRule = {
  subagentId: 'string',
  subagentType: 'string',
  parentToolCallId: 'string',
  prompt: 'string',
  startTime: 'number',
  endTime: 'number',
  success: 'boolean',
  'result?': 'string',
  'error?': 'string',
  'toolExecutions?': [
    {
      toolName: 'string',
      'toolCallId?': 'string',
      arguments: anObject,
      result: 'string',
      'isError?': 'boolean',
      'duration?': 'number',
    },
  ],
  'usage?': usageRule,
  get 'children?'(): readonly [DataRule] {
    return [traceRule]
  },
}

const stateRule: DataRule = {
  id: anId,
  step: (step) =>
    Number.isSafeInteger(step) && (step as number) >= 0 ? undefined : 'a whole number from 0',
  metadata: anObject,
  messages: [anObject],
  'reasoning?': ['string'],
  'plan?': [
    {
      id: 'string',
      description: 'string',
      'tool?': 'string',
      'dependsOn?': ['string'],
      status: oneOf('pending', 'in_progress', 'completed', 'failed'),
    },
  ],
  'subagentTraces?': [traceRule],
  'suspension?': {
    'answered?': anObject,
    deferred: [
      {
        toolCallId: 'string',
        request: {
          kind: oneOf('approval', 'input', 'in_doubt', 'child', 'timer'),
          request: (request) => (request === undefined ? 'JSON' : undefined),
        },
        'parsed?': { arguments: anObject, schema: 'string' },
        'answer?': anObject,
        'answers?': anObject,
      },
    ],
  },
  'run?': accountRule,
}

function oneOf(...names: readonly string[]): DataRule {
  return (value) => (names.includes(value as string) ? undefined : names.join(' or '))
}

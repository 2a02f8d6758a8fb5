import { isObject } from '@skein/base'
import { IssueCode, IssueCollector, type ValidateOptions, type Validation } from './issue-code.ts'
import { joinPointer } from '../issue.ts'
import { checkPart } from './validate-part.ts'

export type { ValidateOptions, Validation } from './issue-code.ts'

/**
 * Checks the structure and the five rules of the specification in one pass. Never throws and never changes
 * the value.
 */
export function validateThread(value: unknown, options: ValidateOptions = {}): Validation {
  const check = new ThreadCheck(options)
  check.thread(value)
  return check.result()
}

/**
 * Checks turns without an agent registry, so that rule V3 (agents are registered) does not apply. Pointers
 * start at `/turns`.
 */
export function validateTurns(turns: unknown, options: ValidateOptions = {}): Validation {
  const check = new ThreadCheck(options)
  check.turns(turns)
  return check.result()
}

type Fields = { readonly [key: string]: unknown }

const RESPONSE_FIELDS = [
  'model_name',
  'provider_name',
  'provider_response_id',
  'usage',
  'finish_reason',
]
const COUNTERS = [
  'input_tokens',
  'output_tokens',
  'thinking_tokens',
  'total_tokens',
  'cache_write_tokens',
  'cache_read_tokens',
  'input_audio_tokens',
  'cache_audio_read_tokens',
  'output_audio_tokens',
]

/** Validates a whole thread document and collects the issues found. */
class ThreadCheck extends IssueCollector {
  #agents: Fields | undefined
  #knownAgent: unknown
  /** The latest end of any turn so far. */
  #latestEnd = -Infinity
  #lastUserTurn = -1
  #lastAnsweredUserTurn = -1

  thread(value: unknown): void {
    if (!isObject(value)) return this.report(IssueCode.WrongType, '', 'an object')
    this.#version(value['version'])
    this.id(value['thread_id'], '/thread_id')
    const createdAt = this.time(value['created_at'], '/created_at')
    const updatedAt = this.time(value['updated_at'], '/updated_at')
    if (updatedAt < createdAt) this.report(IssueCode.UpdatedBeforeCreated, '/updated_at')
    if (value['title'] !== undefined) this.text(value['title'], '/title')
    if (value['metadata'] !== undefined && !isObject(value['metadata'])) {
      this.report(IssueCode.WrongType, '/metadata', 'an object')
    }
    this.#registry(value['agents'])
    this.turns(value['turns'])
  }

  turns(turns: unknown): void {
    if (!Array.isArray(turns)) return this.missingOr(turns, '/turns', 'an array')
    for (let index = 0; index < turns.length; index++) {
      this.turnIndex = index
      this.#turn(turns[index])
    }
    this.turnIndex = -1
    this.#openCalls()
  }

  #version(version: unknown): void {
    if (version === '2.0.0') return
    if (typeof version !== 'string') return this.missingOr(version, '/version', 'a string')
    const newer = /^2\.\d+\.\d+$/.test(version)
    this.report(newer ? IssueCode.NewerVersion : IssueCode.UnsupportedVersion, '/version', '2.0.0')
  }

  #registry(agents: unknown): void {
    if (!isObject(agents)) return this.missingOr(agents, '/agents', 'an object')
    this.#agents = agents
    for (const key of Object.keys(agents)) this.#agent(key, agents[key])
  }

  #agent(key: string, agent: unknown): void {
    const at = joinPointer('/agents', key)
    if (!isObject(agent)) return this.report(IssueCode.WrongType, at, 'an object')
    this.id(agent['agent_id'], `${at}/agent_id`)
    if (typeof agent['agent_id'] === 'string' && agent['agent_id'] !== key) {
      this.report(IssueCode.AgentKeyMismatch, `${at}/agent_id`)
    }
    this.text(agent['agent_name'], `${at}/agent_name`)
    this.time(agent['created_at'], `${at}/created_at`)
    for (const name of ['model_name', 'provider_name', 'config_ref']) {
      this.optionalText(agent[name], `${at}/${name}`)
    }
  }

  #turn(turn: unknown): void {
    if (!isObject(turn)) return this.report(IssueCode.WrongType, '', 'an object')
    const type = turn['turn_type']
    if (type === 'user') this.#userTurn(turn)
    else if (type === 'agent') this.#agentTurn(turn)
    else this.unknownWord(IssueCode.UnknownTurnType, type, '/turn_type')
  }

  #userTurn(turn: Fields): void {
    this.#lastUserTurn = this.turnIndex
    const submittedAt = this.time(turn['submitted_at'], '/submitted_at')
    this.#sequence(submittedAt, submittedAt, '/submitted_at')
    this.#parts(turn['parts'])
  }

  #agentTurn(turn: Fields): void {
    const agentId = turn['agent_id']
    this.#registered(agentId, '/agent_id')
    const startedAt = this.time(turn['started_at'], '/started_at')
    const completedAt = this.time(turn['completed_at'], '/completed_at')
    if (completedAt < startedAt) this.report(IssueCode.TurnEndsBeforeStart, '/completed_at')
    this.#sequence(startedAt, completedAt, '/started_at')
    this.#usage(turn['total_usage'], '/total_usage')
    const messages = turn['messages']
    if (!Array.isArray(messages)) return this.missingOr(messages, '/messages', 'an array')
    let latest = -Infinity
    for (let index = 0; index < messages.length; index++) {
      this.messageIndex = index
      const time = this.#message(messages[index], agentId)
      if (time < latest) this.report(IssueCode.MessagesOutOfOrder, '/timestamp')
      else if (time > latest) latest = time
    }
    this.messageIndex = -1
  }

  /**
   * Checks rule V4 (turns do not overlap). A turn may start at the instant when the previous turn ended, as
   * in the specification's own example.
   */
  #sequence(start: number, end: number, tail: string): void {
    if (start < this.#latestEnd) this.report(IssueCode.TurnsOverlap, tail)
    if (end > this.#latestEnd) this.#latestEnd = end
  }

  /**
   * Checks one message and returns the instant of its timestamp (NaN when the timestamp is missing or
   * invalid).
   */
  #message(message: unknown, turnAgent: unknown): number {
    if (!isObject(message)) {
      this.report(IssueCode.WrongType, '', 'an object')
      return NaN
    }
    const type = message['message_type']
    if (type === 'system') return this.#systemMessage(message)
    if (type !== 'request' && type !== 'response') {
      this.unknownWord(IssueCode.BadValue, type, '/message_type', 'request, response or system')
      return NaN
    }
    const time = this.time(message['timestamp'], '/timestamp')
    const agentId = message['agent_id']
    this.#registered(agentId, '/agent_id')
    if (agentId !== turnAgent && typeof agentId === 'string')
      this.report(IssueCode.AgentDiffers, '/agent_id')
    this.#parts(message['parts'])
    if (type === 'response') this.#lastAnsweredUserTurn = this.#lastUserTurn
    this.#responseFields(message, type)
    return time
  }

  #responseFields(message: Fields, type: 'request' | 'response'): void {
    this.optionalText(message['model_name'], '/model_name')
    this.optionalText(message['provider_name'], '/provider_name')
    this.optionalText(message['provider_response_id'], '/provider_response_id')
    this.#usage(message['usage'], '/usage')
    const reason = message['finish_reason']
    if (reason !== undefined && reason !== null && !isFinishReason(reason)) {
      this.report(
        typeof reason === 'string' ? IssueCode.BadValue : IssueCode.WrongType,
        '/finish_reason',
        'stop, length, content_filter, tool_call or error',
      )
    }
    if (type === 'response') return
    for (const name of RESPONSE_FIELDS) {
      if (message[name] !== undefined && message[name] !== null) {
        this.report(IssueCode.ResponseFieldOnRequest, `/${name}`)
      }
    }
  }

  #systemMessage(message: Fields): number {
    const time = this.time(message['timestamp'], '/timestamp')
    this.text(message['event_type'], '/event_type')
    if (message['event_data'] === undefined) this.report(IssueCode.MissingField, '/event_data')
    const source = message['source_agent']
    this.optionalText(source, '/source_agent')
    if (typeof source === 'string') this.#eventAgent(source, '/source_agent')
    const targets = message['target_agents']
    if (targets === undefined || targets === null) return time
    if (!Array.isArray(targets)) this.report(IssueCode.WrongType, '/target_agents', 'an array')
    else {
      targets.forEach((target: unknown, index) => {
        this.text(target, `/target_agents/${index}`)
        if (typeof target === 'string') this.#eventAgent(target, `/target_agents/${index}`)
      })
    }
    return time
  }

  #eventAgent(agentId: string, tail: string): void {
    if (this.#agents && !Object.hasOwn(this.#agents, agentId)) {
      this.report(IssueCode.UnknownEventAgent, tail)
    }
  }

  #parts(parts: unknown): void {
    if (!Array.isArray(parts)) return this.missingOr(parts, '/parts', 'an array')
    for (let index = 0; index < parts.length; index++) {
      this.partIndex = index
      checkPart(this, parts[index])
    }
    this.partIndex = -1
  }

  #usage(usage: unknown, tail: string): void {
    if (usage === undefined || usage === null) return
    if (!isObject(usage)) return this.report(IssueCode.WrongType, tail, 'an object')
    for (const name of COUNTERS) {
      const count = usage[name]
      if (count !== undefined && typeof count !== 'number') {
        this.report(IssueCode.WrongType, `${tail}/${name}`, 'a number')
      }
    }
  }

  /** Reports calls that can no longer be answered, because the conversation continued without a return. */
  #openCalls(): void {
    for (const call of this.calls.open()) {
      if (call.turnIndex >= this.#lastAnsweredUserTurn) continue
      this.turnIndex = call.turnIndex
      this.messageIndex = call.messageIndex
      this.partIndex = call.partIndex
      this.report(IssueCode.CallLeftOpen, '/tool_call_id')
    }
    this.turnIndex = this.messageIndex = this.partIndex = -1
  }

  /** Checks rule V3: the agent is in the registry. */
  #registered(agentId: unknown, tail: string): void {
    if (agentId === this.#knownAgent && agentId !== undefined) return
    this.id(agentId, tail)
    if (typeof agentId !== 'string' || !this.#agents) return
    if (Object.hasOwn(this.#agents, agentId)) this.#knownAgent = agentId
    else this.report(IssueCode.UnknownAgent, tail)
  }
}

function isFinishReason(value: unknown): boolean {
  return (
    value === 'stop' ||
    value === 'tool_call' ||
    value === 'length' ||
    value === 'content_filter' ||
    value === 'error'
  )
}

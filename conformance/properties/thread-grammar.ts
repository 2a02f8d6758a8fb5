/**
 * ThreadProtocol 2.0.0 as a table, typed off from its interfaces, and a slow reader of it: the model that the
 * property test compares `@skein/threads` with. It shares no code with the package.
 */
import { isObject, type Json, type Path } from './support.ts'

interface Field {
  readonly required: boolean
  readonly shape: Shape
}
type Shape =
  | { readonly is: 'any' | 'string' | 'number' | 'boolean' | 'time' | 'base64' | 'record' }
  | { readonly is: 'literal'; readonly values: readonly string[] }
  | { readonly is: 'object'; readonly name: string }
  | { readonly is: 'list' | 'map'; readonly of: Shape }
  | { readonly is: 'union'; readonly tag: string; readonly names: Readonly<Record<string, string>> }
  | { readonly is: 'either'; readonly shapes: readonly Shape[] }

const any: Shape = { is: 'any' }
const string: Shape = { is: 'string' }
const number: Shape = { is: 'number' }
const time: Shape = { is: 'time' }
const literal = (...values: string[]): Shape => ({ is: 'literal', values })
const object = (name: string): Shape => ({ is: 'object', name })
const list = (of: Shape): Shape => ({ is: 'list', of })
const either = (...shapes: Shape[]): Shape => ({ is: 'either', shapes })
const must = (shape: Shape): Field => ({ required: true, shape })
const may = (shape: Shape): Field => ({ required: false, shape })

const part: Shape = {
  is: 'union',
  tag: 'part_kind',
  names: {
    text: 'TextPart',
    thinking: 'ThinkingPart',
    'tool-call': 'ToolCallPart',
    'tool-return': 'ToolReturnPart',
    'retry-prompt': 'RetryPromptPart',
    file: 'FilePart',
    'user-prompt': 'UserPromptPart',
  },
}
const content: Shape = {
  is: 'union',
  tag: 'kind',
  names: {
    'image-url': 'Url',
    'audio-url': 'Url',
    'video-url': 'Url',
    'document-url': 'Url',
    binary: 'BinaryContent',
  },
}

export const grammar: Readonly<Record<string, Readonly<Record<string, Field>>>> = {
  Thread: {
    version: must(literal('2.0.0')),
    thread_id: must(string),
    created_at: must(time),
    updated_at: must(time),
    title: may(string),
    metadata: may({ is: 'record' }),
    agents: must({ is: 'map', of: object('AgentConfig') }),
    turns: must(
      list({ is: 'union', tag: 'turn_type', names: { user: 'UserTurn', agent: 'AgentTurn' } }),
    ),
  },
  AgentConfig: {
    agent_id: must(string),
    agent_name: must(string),
    model_name: may(string),
    provider_name: may(string),
    created_at: must(time),
    config_ref: may(string),
  },
  UserTurn: { turn_type: must(literal('user')), submitted_at: must(time), parts: must(list(part)) },
  AgentTurn: {
    turn_type: must(literal('agent')),
    agent_id: must(string),
    started_at: must(time),
    completed_at: must(time),
    messages: must(
      list({
        is: 'union',
        tag: 'message_type',
        names: { request: 'ThreadMessage', response: 'ThreadMessage', system: 'SystemMessage' },
      }),
    ),
    total_usage: may(object('Usage')),
  },
  ThreadMessage: {
    message_type: must(literal('request', 'response')),
    timestamp: must(time),
    parts: must(list(part)),
    agent_id: must(string),
    model_name: may(string),
    provider_name: may(string),
    provider_response_id: may(string),
    usage: may(object('Usage')),
    finish_reason: may(literal('stop', 'length', 'content_filter', 'tool_call', 'error')),
  },
  SystemMessage: {
    message_type: must(literal('system')),
    timestamp: must(time),
    event_type: must(string),
    event_data: must(any),
    source_agent: may(string),
    target_agents: may(list(string)),
  },
  TextPart: { part_kind: must(literal('text')), content: must(string), id: may(string) },
  ThinkingPart: {
    part_kind: must(literal('thinking')),
    content: may(string),
    signature: may(string),
    // The interface requires it, but the section on the Vercel stream makes thinking parts without it.
    provider_name: may(string),
    thinking_id: may(string),
  },
  ToolCallPart: {
    part_kind: must(literal('tool-call')),
    tool_name: must(string),
    tool_call_id: must(string),
    args: must(any),
  },
  ToolReturnPart: {
    part_kind: must(literal('tool-return')),
    tool_name: must(string),
    tool_call_id: must(string),
    status: must(literal('success', 'error', 'validation_error')),
    content: must(any),
    metadata: may(any),
  },
  RetryPromptPart: {
    part_kind: must(literal('retry-prompt')),
    content: must(either(string, list(any))),
    tool_name: may(string),
    tool_call_id: may(string),
  },
  FilePart: {
    part_kind: must(literal('file')),
    content: must(object('BinaryContent')),
    id: may(string),
  },
  UserPromptPart: {
    part_kind: must(literal('user-prompt')),
    content: must(either(string, list(either(string, content)))),
  },
  Url: {
    kind: must(literal('image-url', 'audio-url', 'video-url', 'document-url')),
    url: must(string),
    identifier: must(string),
    force_download: may({ is: 'boolean' }),
    vendor_metadata: may(any),
    media_type: may(string),
  },
  BinaryContent: {
    kind: must(literal('binary')),
    data: must({ is: 'base64' }),
    media_type: must(string),
    identifier: must(string),
    vendor_metadata: may(any),
  },
  Usage: {
    input_tokens: may(number),
    output_tokens: may(number),
    thinking_tokens: may(number),
    total_tokens: may(number),
  },
}

export interface Node {
  readonly type: string
  readonly path: Path
}

/** What is wrong with the structure of a document, and every object that the grammar knows in it. */
export function readStructure(document: unknown): { wrong: string[]; nodes: Node[] } {
  const wrong: string[] = []
  const nodes: Node[] = []
  const readObject = (name: string, value: unknown, path: Path): void => {
    if (!isObject(value)) {
      wrong.push(`${path.join('/')} is no ${name}`)
      return
    }
    nodes.push({ type: name, path })
    for (const [key, { required, shape }] of Object.entries(grammar[name]!)) {
      if (Object.hasOwn(value, key)) read(shape, value[key], [...path, key])
      else if (required) wrong.push(`${path.join('/')} lacks ${key}`)
    }
  }
  const read = (shape: Shape, value: unknown, path: Path): void => {
    const refuse = (): void => void wrong.push(`${path.join('/')} is no ${shape.is}`)
    switch (shape.is) {
      case 'any':
        return
      case 'string':
      case 'number':
      case 'boolean':
        if (typeof value !== shape.is) refuse()
        return
      case 'time':
        if (typeof value !== 'string' || instant(value) === undefined) refuse()
        return
      case 'base64':
        if (typeof value !== 'string' || !/^([\w+/]{4})*([\w+/]{2}==|[\w+/]{3}=)?$/.test(value))
          refuse()
        return
      case 'record':
        if (!isObject(value)) refuse()
        return
      case 'literal':
        if (!shape.values.includes(value as string)) refuse()
        return
      case 'object':
        readObject(shape.name, value, path)
        return
      case 'list':
        if (!Array.isArray(value)) refuse()
        else value.forEach((item, index) => read(shape.of, item, [...path, index]))
        return
      case 'map':
        if (!isObject(value)) refuse()
        else for (const [key, item] of Object.entries(value)) read(shape.of, item, [...path, key])
        return
      case 'union': {
        const tag = isObject(value) ? value[shape.tag] : undefined
        if (typeof tag !== 'string' || !Object.hasOwn(shape.names, tag)) refuse()
        else readObject(shape.names[tag]!, value, path)
        return
      }
      case 'either': {
        if (typeof value === 'string') return
        const other = shape.shapes.find(({ is }) => is !== 'string')!
        read(other, value, path)
      }
    }
  }
  readObject('Thread', document, [])
  return { wrong, nodes }
}

/** The instant of an ISO 8601 date and time with a zone, in milliseconds. */
export function instant(text: string): number | undefined {
  const match =
    /^(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:\.(\d{3}))?(?:Z|([+-])(\d\d):(\d\d))$/.exec(text)
  if (!match) return undefined
  const [year, month, day, hour, minute, second] = match.slice(1, 7).map(Number) as number[]
  const lengths = [31, year! % 4 === 0 ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
  if (month! < 1 || month! > 12 || day! < 1 || day! > lengths[month! - 1]!) return undefined
  if (hour! > 23 || minute! > 59 || second! > 59) return undefined
  const offset = (match[8] === '-' ? -1 : 1) * (Number(match[9] ?? 0) * 60 + Number(match[10] ?? 0))
  return (
    Date.UTC(year!, month! - 1, day, hour, minute, second, Number(match[7] ?? 0)) - offset * 60_000
  )
}

/** The five validation rules at the end of the specification, for a document whose structure is right. */
export function brokenRules(thread: Json): string[] {
  const broken: string[] = []
  const agents = thread['agents'] as Record<string, Json>
  const known = (id: unknown): void => {
    if (!Object.hasOwn(agents, id as string)) broken.push('rule 3: agent_id')
  }
  for (const agent of Object.values(agents)) known(agent['agent_id'])
  const open: Json[] = []
  let last = -Infinity
  const follows = (text: unknown): void => {
    // "completed_at < next started_at", but the example of the specification has two equal ones.
    if (instant(text as string)! < last) broken.push('rule 4: turns overlap')
    last = instant(text as string)!
  }
  for (const turn of thread['turns'] as Json[]) {
    if (turn['turn_type'] === 'user') {
      follows(turn['submitted_at'])
      pair(turn['parts'] as Json[])
      continue
    }
    known(turn['agent_id'])
    follows(turn['started_at'])
    follows(turn['completed_at'])
    let before = -Infinity
    for (const message of turn['messages'] as Json[]) {
      const at = instant(message['timestamp'] as string)!
      if (at < before) broken.push('rule 5: messages out of order')
      before = at
      if (message['message_type'] === 'system') continue
      known(message['agent_id'])
      pair(message['parts'] as Json[])
    }
  }
  function pair(parts: Json[]): void {
    for (const one of parts) {
      if (one['part_kind'] === 'tool-call') open.push(one)
      const isRetry = one['part_kind'] === 'retry-prompt' && Object.hasOwn(one, 'tool_name')
      if (one['part_kind'] !== 'tool-return' && !isRetry) continue
      const index = open.findIndex(
        (call) =>
          call['tool_call_id'] === one['tool_call_id'] && call['tool_name'] === one['tool_name'],
      )
      if (index >= 0) open.splice(index, 1)
      else if (!isRetry) broken.push('rule 2: tool_call_id')
    }
  }
  return broken
}

/** Everything that is wrong with a document. */
export function wrongsOf(document: unknown): string[] {
  const { wrong } = readStructure(document)
  return wrong.length > 0 ? wrong : brokenRules(document as Json)
}

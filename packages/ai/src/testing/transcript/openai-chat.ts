import type { JsonObject } from '@skein/base'
import {
  asList,
  asObject,
  isJsonObjectText,
  isJsonObject,
  isText,
  matches,
  type Report,
} from './report.ts'

/** The rules for request bodies, taken from the API reference and from errors that the API is known to return. */
export const openaiChatRules = {
  model: 'model is required',
  messages: 'messages is a list with at least one message',
  role: 'a message has a known role',
  'user-content': 'the content of a user message is a text or a list of known parts',
  'assistant-content': 'an assistant message has content, a refusal or tool calls',
  'tool-calls': 'tool_calls is not an empty list',
  'call-id': 'the id of a call is a text of 1 to 40 characters',
  'call-unique': 'ids of calls are unique within their message',
  'call-type': 'a call is of type function or custom',
  'call-name': 'the name of a function matches ^[a-zA-Z0-9_-]{1,64}$',
  'call-arguments': 'the arguments of a call are the text of a JSON object',
  'call-answered': 'every call is answered by a tool message before any other message follows',
  'result-orphan': 'a tool message answers an open call of the assistant message before it',
  'result-once': 'a call is answered once',
  'result-content': 'the content of a tool message is text',
  'tool-definition': 'a tool has a valid, unique name and parameters of type object',
  'response-format': 'a json_schema format has a name and a schema',
  'stream-options': 'stream_options is only allowed when stream is true',
} as const

type Rule = keyof typeof openaiChatRules

const roles = new Set(['system', 'developer', 'user', 'assistant', 'tool'])
const functionName = /^[a-zA-Z0-9_-]{1,64}$/

/** Checks a request of `POST /v1/chat/completions` strictly. */
export function checkOpenAIChat(body: JsonObject, report: Report<Rule>): void {
  report.check(isText(body['model']), 'model', 'model')
  const isStreamed = body['stream'] === true || body['stream_options'] === undefined
  report.check(isStreamed, 'stream-options', 'stream_options')
  const names = new Set<string>()
  asList(body['tools']).forEach((item, index) => {
    const tool = asObject(item)
    if (tool['type'] !== 'function') return
    const { name, parameters } = asObject(tool['function'])
    const isNamed = matches(name, functionName) && !names.has(String(name))
    const hasSchema = parameters === undefined || asObject(parameters)['type'] === 'object'
    report.check(isNamed && hasSchema, 'tool-definition', `tools[${index}]`)
    names.add(String(name))
  })
  const format = asObject(body['response_format'])
  if (format['type'] === 'json_schema') {
    const { name, schema } = asObject(format['json_schema'])
    const isRight = matches(name, functionName) && isJsonObject(schema)
    report.check(isRight, 'response-format', 'response_format')
  }
  const messages = asList(body['messages'])
  if (!report.check(messages.length > 0, 'messages', 'messages')) return
  const answers = new OpenCalls(report)
  messages.forEach((item, index) => {
    const path = `messages[${index}]`
    const message = asObject(item)
    const role = String(message['role'])
    report.check(roles.has(role), 'role', path)
    if (role === 'tool') return answers.answer(message, path)
    answers.close()
    if (role === 'user') {
      const { content } = message
      const list = asList(content)
      // A part has a field with the name of its type.
      const isPart = (part: JsonObject): boolean => {
        const type = String(part['type'])
        return parts.has(type) && part[type] !== undefined
      }
      const isRight =
        typeof content === 'string' ||
        (list.length > 0 && list.every((part) => isPart(asObject(part))))
      report.check(isRight, 'user-content', path)
    }
    if (role === 'assistant') {
      checkAssistant(message, path, report)
      answers.open(message, path)
    }
  })
  answers.close()
}

/** Tracks the calls that have no tool message yet. */
class OpenCalls {
  readonly #report: Report<Rule>
  #calls = new Map<string, { readonly path: string; answered: number }>()

  constructor(report: Report<Rule>) {
    this.#report = report
  }

  open(message: JsonObject, path: string): void {
    asList(message['tool_calls']).forEach((item, index) => {
      const id = String(asObject(item)['id'])
      const at = `${path}.tool_calls[${index}]`
      this.#report.check(!this.#calls.has(id), 'call-unique', at)
      this.#calls.set(id, { path: at, answered: 0 })
    })
  }

  answer(message: JsonObject, path: string): void {
    const call = this.#calls.get(String(message['tool_call_id']))
    const { content } = message
    const texts = asList(content)
    const isText =
      typeof content === 'string' ||
      (texts.length > 0 && texts.every((part) => asObject(part)['type'] === 'text'))
    this.#report.check(isText, 'result-content', path)
    if (!this.#report.check(call !== undefined, 'result-orphan', path)) return
    call!.answered += 1
    this.#report.check(call!.answered === 1, 'result-once', path)
  }

  close(): void {
    for (const { path, answered } of this.#calls.values())
      this.#report.check(answered > 0, 'call-answered', path)
    this.#calls = new Map()
  }
}

const parts = new Set(['text', 'image_url', 'input_audio', 'file', 'video_url', 'document_url'])

function checkAssistant(message: JsonObject, path: string, report: Report<Rule>): void {
  const { content, tool_calls, refusal, audio } = message
  const hasContent = typeof content === 'string' || asList(content).length > 0
  const isSaid = hasContent || isText(refusal) || audio !== undefined
  report.check(isSaid || asList(tool_calls).length > 0, 'assistant-content', path)
  if (tool_calls === undefined) return
  report.check(asList(tool_calls).length > 0, 'tool-calls', path)
  asList(tool_calls).forEach((item, index) => {
    const at = `${path}.tool_calls[${index}]`
    const call = asObject(item)
    const { id, type } = call
    report.check(isText(id) && id.length <= 40, 'call-id', at)
    if (!report.check(type === 'function' || type === 'custom', 'call-type', at)) return
    const callee = asObject(call[type as string])
    report.check(matches(callee['name'], functionName), 'call-name', at)
    const isRight =
      type === 'custom'
        ? typeof callee['input'] === 'string'
        : isJsonObjectText(callee['arguments'])
    report.check(isRight, 'call-arguments', at)
  })
}

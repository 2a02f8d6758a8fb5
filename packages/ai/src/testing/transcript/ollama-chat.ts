import type { JsonObject } from '@skein/base'
import { asList, asObject, isBase64, isJsonObject, isText, type Report } from './report.ts'

/**
 * The rules for request bodies, taken from the API documentation; stricter than the server, which passes most
 * mistakes to the model.
 */
export const ollamaRules = {
  model: 'model is required',
  messages: 'messages is a list',
  role: 'a message has the role system, user, assistant or tool',
  content: 'the content of a message is text',
  images: 'images are base64 without a data: prefix',
  'call-name': 'a call names its function',
  'call-arguments': 'the arguments of a call are an object',
  'call-answered': 'every call is answered by a tool message before any other message follows',
  'result-name': 'a tool message names the tool of an open call',
  format: 'format is "json" or a schema',
  'tool-definition': 'a tool has a unique name and parameters of type object',
} as const

type Rule = keyof typeof ollamaRules

const roles = new Set(['system', 'user', 'assistant', 'tool'])

/** Checks a request of `POST /api/chat` strictly. */
export function checkOllama(body: JsonObject, report: Report<Rule>): void {
  report.check(isText(body['model']), 'model', 'model')
  const { format } = body
  const isFormat =
    format === undefined || format === '' || format === 'json' || isJsonObject(format)
  report.check(isFormat, 'format', 'format')
  const names = new Set<string>()
  asList(body['tools']).forEach((item, index) => {
    const { name, parameters } = asObject(asObject(item)['function'])
    const isRight = isText(name) && !names.has(name) && asObject(parameters)['type'] === 'object'
    report.check(isRight, 'tool-definition', `tools[${index}]`)
    names.add(String(name))
  })
  if (!report.check(Array.isArray(body['messages']), 'messages', 'messages')) return
  let open: string[] = []
  let openedAt = ''
  const close = (): void => {
    report.check(open.length === 0, 'call-answered', openedAt)
    open = []
  }
  asList(body['messages']).forEach((item, index) => {
    const path = `messages[${index}]`
    const message = asObject(item)
    report.check(roles.has(String(message['role'])), 'role', path)
    report.check(typeof message['content'] === 'string', 'content', path)
    report.check(asList(message['images']).every(isBase64), 'images', path)
    asList(message['tool_calls']).forEach((item, index) => {
      const at = `${path}.tool_calls[${index}]`
      const callee = asObject(asObject(item)['function'])
      report.check(isText(callee['name']), 'call-name', at)
      report.check(isJsonObject(callee['arguments']), 'call-arguments', at)
    })
    if (message['role'] === 'tool') {
      const at = open.indexOf(String(message['tool_name'] ?? message['name']))
      report.check(at >= 0, 'result-name', path)
      if (at >= 0) open.splice(at, 1)
      return
    }
    close()
    openedAt = path
    open = asList(message['tool_calls']).map((call) =>
      String(asObject(asObject(call)['function'])['name']),
    )
  })
  close()
}

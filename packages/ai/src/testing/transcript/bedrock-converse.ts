import type { JsonObject } from '@skein/base'
import { asList, asObject, isBase64, isJsonObject, isText, matches, type Report } from './report.ts'

/** The rules for request bodies, taken from the API reference and from errors that the API is known to return. */
export const bedrockRules = {
  messages: 'messages is a list with at least one message',
  role: 'a message has the role user or assistant, and users and assistants take turns',
  'first-role': 'the first message is of the user',
  'last-role': 'the last message is of the user',
  content: 'a message has at least one block, and a block one kind of content',
  text: 'a text has a visible character',
  media: 'media have a format and bytes in base64, or an address in S3',
  'document-name': 'a document has a name of letters, digits, single spaces, - () []',
  reasoning: 'reasoning of an assistant has its signature, and does not end the message',
  'signature-issued': 'a signature comes from this vendor',
  'call-id': 'the id of a call matches ^[a-zA-Z0-9_-]{1,64}$ and occurs once in its message',
  'call-input': 'the input of a call is an object',
  'call-answered':
    'the next message has one result for each call, before all else, and no other results',
  'result-content': 'the content of a result is a list of texts, JSON objects and media',
  'tools-declared': 'a conversation with calls declares tools',
  'tool-definition': 'a function has a valid, unique name, no empty description and a schema',
  system: 'system is a list of texts that are not blank',
  format: 'outputConfig.textFormat has the JSON text of a schema',
} as const

type Rule = keyof typeof bedrockRules

const callId = /^[a-zA-Z0-9_-]{1,64}$/
const documentName = /^[A-Za-z0-9\-()[\]]+( [A-Za-z0-9\-()[\]]+)*$/

/** Checks a request of Converse strictly. */
export function checkBedrock(body: JsonObject, report: Report<Rule>): void {
  const { system, toolConfig, outputConfig } = body
  if (system !== undefined) {
    const isRight = asList(system).every((item) => {
      const { text, cachePoint } = asObject(item)
      return isVisible(text) || cachePoint !== undefined
    })
    report.check(isRight && asList(system).length > 0, 'system', 'system')
  }
  const tools = asList(asObject(toolConfig)['tools'])
  checkTools(tools.map(asObject), report)
  const format = asObject(outputConfig)['textFormat']
  if (format !== undefined) {
    const { jsonSchema } = asObject(asObject(format)['structure'])
    const { schema } = asObject(jsonSchema)
    report.check(isText(schema) && schema.startsWith('{'), 'format', 'outputConfig.textFormat')
  }
  const list = asList(body['messages']).map(asObject)
  if (!report.check(list.length > 0, 'messages', 'messages')) return
  report.check(list[0]!['role'] === 'user', 'first-role', 'messages[0]')
  report.check(list.at(-1)!['role'] === 'user', 'last-role', `messages[${list.length - 1}]`)
  let open: readonly string[] = []
  let hasCalls = false
  list.forEach(({ role, content }, index) => {
    const at = `messages[${index}]`
    const isKnown = role === 'user' || role === 'assistant'
    report.check(isKnown && list[index - 1]?.['role'] !== role, 'role', at)
    const blocks = asList(content).map(asObject)
    report.check(blocks.length > 0 && blocks.every((block) => Object.keys(block).length === 1), 'content', at) // prettier-ignore
    blocks.forEach((block, i) => checkBlock(block, `${at}.content[${i}]`, report))
    const results = blocks.flatMap(({ toolResult }) => toolResult === undefined ? [] : [String(asObject(toolResult)['toolUseId'])]) // prettier-ignore
    const isFirst = blocks.slice(0, results.length).every(({ toolResult }) => toolResult !== undefined) // prettier-ignore
    const isAnswered = results.length === open.length && open.every((id) => results.includes(id))
    report.check(isAnswered && isFirst, 'call-answered', at)
    open = blocks.flatMap(({ toolUse }) => toolUse === undefined || asObject(toolUse)['type'] !== undefined ? [] : [String(asObject(toolUse)['toolUseId'])]) // prettier-ignore
    report.check(new Set(open).size === open.length, 'call-id', at)
    hasCalls ||= open.length > 0
    if (role === 'assistant')
      report.check(blocks.at(-1)?.['reasoningContent'] === undefined, 'reasoning', at)
  })
  report.check(open.length === 0, 'call-answered', 'messages')
  report.check(!hasCalls || tools.length > 0, 'tools-declared', 'toolConfig')
}

function isVisible(text: unknown): boolean {
  return typeof text === 'string' && text.trim() !== ''
}

function checkTools(tools: readonly JsonObject[], report: Report<Rule>): void {
  const names = new Set<string>()
  tools.forEach(({ toolSpec }, index) => {
    if (toolSpec === undefined) return
    const { name, description, inputSchema } = asObject(toolSpec)
    const isNamed = matches(name, callId) && !names.has(String(name))
    const isDescribed = description === undefined || isText(description)
    const hasSchema = isJsonObject(asObject(inputSchema)['json'])
    const path = `toolConfig.tools[${index}]`
    report.check(isNamed && isDescribed && hasSchema, 'tool-definition', path)
    names.add(String(name))
  })
}

function checkBlock(block: JsonObject, at: string, report: Report<Rule>): void {
  const { text, reasoningContent, toolUse, toolResult, document } = block
  if (text !== undefined) report.check(isVisible(text), 'text', at)
  for (const kind of ['image', 'document', 'audio', 'video'])
    if (block[kind] !== undefined) {
      const { format, source } = asObject(block[kind])
      const { bytes, s3Location, text: plain } = asObject(source)
      const isRight = isText(format) && (isBase64(bytes) || s3Location !== undefined || isText(plain)) // prettier-ignore
      report.check(isRight, 'media', at)
    }
  if (document !== undefined)
    report.check(matches(asObject(document)['name'], documentName), 'document-name', at)
  if (reasoningContent !== undefined) {
    const { reasoningText, redactedContent } = asObject(reasoningContent)
    const { signature, text: thought } = asObject(reasoningText)
    report.check(isText(signature) || isText(redactedContent), 'reasoning', at)
    const isOwn = redactedContent !== undefined || report.isIssued(signature, String(thought))
    report.check(isOwn, 'signature-issued', at)
  }
  if (toolUse !== undefined) {
    const { toolUseId, input } = asObject(toolUse)
    report.check(matches(toolUseId, callId), 'call-id', at)
    report.check(isJsonObject(input), 'call-input', at)
  }
  if (toolResult !== undefined) {
    const { content } = asObject(toolResult)
    const isRight =
      Array.isArray(content) &&
      content.map(asObject).every((item) => {
        const [kind, ...others] = Object.keys(item)
        if (others.length > 0) return false
        if (kind === 'text') return isVisible(item['text'])
        if (kind === 'json') return isJsonObject(item['json'])
        return ['image', 'document', 'video'].includes(String(kind))
      })
    report.check(isRight, 'result-content', at)
    if (isRight)
      asList(content).forEach((item, index) => {
        const { json, ...rest } = asObject(item)
        if (json === undefined) checkBlock(rest, `${at}.toolResult.content[${index}]`, report)
      })
  }
}
